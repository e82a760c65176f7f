"""Models: columns, constraints and what is read from them. State changes live in operations."""

from .duty import Duty
from .job import Job
from .queue import TenantQueue
from .rate import QueueRate
from .session import Session, UserCap
from .taskcontrol import TaskControl
from .uniquekey import UniqueKey
from .worker import Worker

__all__ = [
    "Duty",
    "Job",
    "QueueRate",
    "Session",
    "TaskControl",
    "TenantQueue",
    "UniqueKey",
    "UserCap",
    "Worker",
]
