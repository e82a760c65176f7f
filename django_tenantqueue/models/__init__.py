"""Models: columns, constraints and what is read from them. State changes live in operations."""

from .alert import Alert, AlertRule
from .api_token import ApiToken
from .change import Change
from .duty import Duty
from .figure import Figure
from .figure_total import FigureTotal
from .fireworq_queue import FireworqQueue
from .idempotency_key import IdempotencyKey
from .job import Job
from .monitor import (
    ConcurrentJobMonitor,
    ConcurrentJobMonitorDetail,
    MonitorAddition,
    MonitorPace,
)
from .queue import TenantQueue
from .rate import QueueRate, TaskRate
from .retention_rule import RetentionRule
from .routing import Routing
from .schedule import Schedule
from .session import Session, UserCap
from .task_control import TaskControl
from .unique_key import UniqueKey
from .worker import Worker

__all__ = [
    "Alert",
    "AlertRule",
    "ApiToken",
    "Change",
    "ConcurrentJobMonitor",
    "ConcurrentJobMonitorDetail",
    "Duty",
    "Figure",
    "FigureTotal",
    "FireworqQueue",
    "IdempotencyKey",
    "Job",
    "MonitorAddition",
    "MonitorPace",
    "QueueRate",
    "RetentionRule",
    "Routing",
    "Schedule",
    "Session",
    "TaskControl",
    "TaskRate",
    "TenantQueue",
    "UniqueKey",
    "UserCap",
    "Worker",
]
