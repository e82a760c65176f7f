"""Models: columns, constraints and what is read from them. State changes live in operations."""

from typing import TYPE_CHECKING

from ..calls.other_systems import no_such_name
from .change import Change
from .duty import Duty
from .figure import Figure
from .job import Job
from .monitor import (
    ConcurrentJobMonitor,
    ConcurrentJobMonitorDetail,
    MonitorAddition,
    MonitorPace,
)
from .mute import Mute
from .queue import TenantQueue
from .rate import QueueRate, TaskRate
from .session import Session, UserLimit
from .task_control import TaskControl
from .unique_key import UniqueKey
from .worker import Worker

__all__ = [
    "Change",
    "ConcurrentJobMonitor",
    "ConcurrentJobMonitorDetail",
    "Duty",
    "Figure",
    "Job",
    "MonitorAddition",
    "MonitorPace",
    "Mute",
    "QueueRate",
    "Session",
    "TaskControl",
    "TaskRate",
    "TenantQueue",
    "UniqueKey",
    "UserLimit",
    "Worker",
]

if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        """Say which model is meant by a name of other systems."""
        raise no_such_name(__name__, name)
