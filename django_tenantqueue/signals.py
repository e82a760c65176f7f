"""Signals. They announce; nothing in the package acts on them.

All are sent in the process that ran the job, outside any transaction of ours:

- `job_started(sender=task name, job_id, attempt)`
- `job_finished(sender=task name, job_id, state)`: the worker is about to store a final state
- `job_retried(sender=task name, job_id, attempt, error)`: it will run again
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.dispatch import Signal


class TaskSignal(Signal):
    """A signal whose senders are names of tasks. A receiver may name the task itself, too.

    Django compares senders by identity, and the name of a job that runs comes from the database.
    """

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[str, str] = {}

    def connect(
        self, receiver: Any, sender: Any = None, weak: bool = True, dispatch_uid: Any = None
    ) -> None:
        """Connect a receiver to the jobs of a task, or of all."""
        name = getattr(sender, "name", sender)
        super().connect(receiver, self._names.setdefault(name, name), weak, dispatch_uid)

    def disconnect(
        self, receiver: Any = None, sender: Any = None, dispatch_uid: Any = None
    ) -> bool:
        """Disconnect a receiver."""
        return super().disconnect(receiver, self._known(sender), dispatch_uid)

    def send_robust(self, sender: Any, **named: Any) -> Any:
        """Call the receivers of a task."""
        return super().send_robust(self._known(sender), **named)

    def _known(self, sender: Any) -> Any:
        name = getattr(sender, "name", sender)
        return self._names.get(name, name)


job_started = TaskSignal()
job_finished = TaskSignal()
job_retried = TaskSignal()

_CONTEXT = "a class of the setting CONTEXT, which carries a value to the run"
_FINISHED = "job_finished of django_tenantqueue.signals, with state"
_WRAPPERS = "the setting WRAPPERS"

ELSEWHERE = {
    "after_task_publish": "the hook enqueue(job) of @task(hooks=…)",
    "before_task_publish": f"{_CONTEXT}, or the hook enqueue(job) of @task(hooks=…)",
    "task_failure": f"{_FINISHED} 'error'; the exception passes through {_WRAPPERS}",
    "task_postrun": f"{_WRAPPERS}, for code around each run",
    "task_prerun": f"job_started of django_tenantqueue.signals, or {_WRAPPERS}",
    "task_retry": "job_retried of django_tenantqueue.signals",
    "task_success": f"{_FINISHED} 'success'",
}
"""Signals of Celery, and what is used here."""

if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        """Say what is used in place of a known name: `from … import` shows an ImportError alone."""
        if name in ELSEWHERE:
            raise ImportError(f"{__name__} has no {name!r}: use {ELSEWHERE[name]}", name=name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
