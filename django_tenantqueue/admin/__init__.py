"""The operators' seat: tenant queues, jobs, workers and maintenance in Django's admin."""

from .changes import ChangeAdmin
from .duties import DutyAdmin
from .jobs import JobAdmin
from .jobs_of_object import JobsOfObjectMixin
from .monitors import ConcurrentJobMonitorAdmin
from .mutes import MuteAdmin
from .queues import TenantQueueAdmin
from .sessions import SessionAdmin, UserLimitAdmin
from .task_control import TaskControlAdmin
from .workers import WorkerAdmin

__all__ = [
    "ChangeAdmin",
    "ConcurrentJobMonitorAdmin",
    "DutyAdmin",
    "JobAdmin",
    "JobsOfObjectMixin",
    "MuteAdmin",
    "SessionAdmin",
    "TaskControlAdmin",
    "TenantQueueAdmin",
    "UserLimitAdmin",
    "WorkerAdmin",
]
