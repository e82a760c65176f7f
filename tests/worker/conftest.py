"""What tests of a worker's parts share."""

from tests.execution.conftest import claimed_job

__all__ = ["claimed_job"]
