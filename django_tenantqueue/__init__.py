"""A multi-tenant job queue in the Django project's own PostgreSQL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .calls.call import Call
    from .calls.option_types import JobOptions, TaskOptions
    from .calls.serial import Serial
    from .calls.task_hooks import TaskHooks
    from .calls.tenant import get_tenant, use_tenant
    from .calls.unique import Unique
    from .contrib.schedules.recurrence import Cron, Every
    from .exceptions import Cancelled, ClaimLost, DuplicateJob, Permanent, Postpone, Retry
    from .execution.current_job import RunningJob
    from .groups import Group, group
    from .models import ConcurrentJobMonitor, Job
    from .states import Priority, State
    from .tasks import BoundTask, Delayable, Task, adelayed, current_job, delayed, task

    def Placeholder(name: str) -> Any:  # noqa: N802 - it stands for an argument of any type
        """See calls.arguments.Placeholder."""


_HOMES = {
    "task": "tasks",
    "Task": "tasks",
    "BoundTask": "tasks",
    "adelayed": "tasks",
    "delayed": "tasks",
    "Delayable": "tasks",
    "current_job": "tasks",
    "RunningJob": "execution.current_job",
    "group": "groups",
    "Group": "groups",
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
    "Call": "calls.call",
    "JobOptions": "calls.option_types",
    "TaskOptions": "calls.option_types",
    "Serial": "calls.serial",
    "TaskHooks": "calls.task_hooks",
    "Unique": "calls.unique",
    "get_tenant": "calls.tenant",
    "use_tenant": "calls.tenant",
    "Placeholder": "calls.arguments",
    "Cron": "contrib.schedules.recurrence",
    "Every": "contrib.schedules.recurrence",
}

__all__ = [
    "BoundTask",
    "Call",
    "Cancelled",
    "ClaimLost",
    "ConcurrentJobMonitor",
    "Cron",
    "Delayable",
    "DuplicateJob",
    "Every",
    "Group",
    "Job",
    "JobOptions",
    "Permanent",
    "Placeholder",
    "Postpone",
    "Priority",
    "Retry",
    "RunningJob",
    "Serial",
    "State",
    "Task",
    "TaskHooks",
    "TaskOptions",
    "Unique",
    "adelayed",
    "current_job",
    "delayed",
    "get_tenant",
    "group",
    "task",
    "use_tenant",
]


if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        home = _HOMES.get(name)
        if home is None:
            from .calls.other_systems import no_such_name

            raise no_such_name(__name__, name)
        return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
