"""Claims of jobs that are in no table, as the tests of runs have them."""

from tests.execution.conftest import claimed_job

__all__ = ["claimed_job"]
