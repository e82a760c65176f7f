"""The operators' seat: tenant queues, jobs, workers and maintenance in Django's admin."""

from .alerts import AlertAdmin, AlertRuleAdmin
from .api_tokens import ApiTokenAdmin
from .changes import ChangeAdmin
from .duties import DutyAdmin
from .jobs import JobAdmin
from .jobs_of_object import JobsOfObjectMixin
from .monitors import ConcurrentJobMonitorAdmin
from .queues import TenantQueueAdmin
from .retention_rules import RetentionRuleAdmin
from .routings import RoutingAdmin
from .schedules import ScheduleAdmin
from .sessions import SessionAdmin, UserCapAdmin
from .task_control import TaskControlAdmin
from .workers import WorkerAdmin

__all__ = [
    "AlertAdmin",
    "AlertRuleAdmin",
    "ApiTokenAdmin",
    "ChangeAdmin",
    "ConcurrentJobMonitorAdmin",
    "DutyAdmin",
    "JobAdmin",
    "JobsOfObjectMixin",
    "RetentionRuleAdmin",
    "RoutingAdmin",
    "ScheduleAdmin",
    "SessionAdmin",
    "TaskControlAdmin",
    "TenantQueueAdmin",
    "UserCapAdmin",
    "WorkerAdmin",
]
