"""The operators' seat: tenant queues, jobs and workers in Django's admin."""

from .jobs import JobAdmin
from .queues import TenantQueueAdmin
from .workers import WorkerAdmin

__all__ = ["JobAdmin", "TenantQueueAdmin", "WorkerAdmin"]
