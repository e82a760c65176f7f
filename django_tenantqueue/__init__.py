"""A multi-tenant job queue in the Django project's own PostgreSQL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .calls.tenant import get_tenant, use_tenant
    from .calls.unique import Unique
    from .contrib.schedules.recurrence import Cron, Every
    from .exceptions import Cancelled, ClaimLost, DuplicateJob, Permanent, Postpone, Retry
    from .groups import group
    from .models import ConcurrentJobMonitor, Job
    from .states import Priority, State
    from .tasks import Delayable, Task, adelayed, current_job, delay, task

    def Placeholder(name: str) -> Any:  # noqa: N802 - it stands for an argument of any type
        """See calls.arguments.Placeholder."""


_HOMES = {
    "task": "tasks",
    "Task": "tasks",
    "delay": "tasks",
    "adelayed": "tasks",
    "Delayable": "tasks",
    "current_job": "tasks",
    "group": "groups",
    "ConcurrentJobMonitor": "models",
    "Job": "models",
    "Priority": "states",
    "State": "states",
    "Retry": "exceptions",
    "Permanent": "exceptions",
    "Postpone": "exceptions",
    "Cancelled": "exceptions",
    "ClaimLost": "exceptions",
    "DuplicateJob": "exceptions",
    "Unique": "calls.unique",
    "get_tenant": "calls.tenant",
    "use_tenant": "calls.tenant",
    "Placeholder": "calls.arguments",
    "Cron": "contrib.schedules.recurrence",
    "Every": "contrib.schedules.recurrence",
}

__all__ = [
    "Cancelled",
    "ClaimLost",
    "ConcurrentJobMonitor",
    "Cron",
    "Delayable",
    "DuplicateJob",
    "Every",
    "Job",
    "Permanent",
    "Placeholder",
    "Postpone",
    "Priority",
    "Retry",
    "State",
    "Task",
    "Unique",
    "adelayed",
    "current_job",
    "delay",
    "get_tenant",
    "group",
    "task",
    "use_tenant",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        from .calls.foreign import no_such_name

        raise no_such_name(__name__, name)
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
