"""The operators' seat: tenant queues, jobs, workers and maintenance in Django's admin."""

from .duties import DutyAdmin
from .jobs import JobAdmin
from .queues import TenantQueueAdmin
from .workers import WorkerAdmin

__all__ = ["DutyAdmin", "JobAdmin", "TenantQueueAdmin", "WorkerAdmin"]
