"""Celery as an executor: `TENANTQUEUE["EXECUTORS"]`. Needs the extra `celery`."""

from ...calls.sources import register_adopter, register_finder
from .adopted import adopt, find_adopted
from .executor import CeleryExecutor

__all__ = ["CeleryExecutor", "adopt"]

register_finder(find_adopted)
register_adopter(adopt)
