"""Signals. They announce; nothing in the package acts on them.

`sender` is the task; None for a job of a method or of a function that CALLABLES lists, or of a task
that this process does not know. `task` is `Job.task`.

- `job_enqueued(sender, task, job_id, tenant, queue)`: after the INSERT, in the caller's transaction
- `job_started(sender, task, job_id, attempt)`: before each run
- `job_finished(sender, task, job_id, state, error)`: the worker is about to store a final state
- `job_retried(sender, task, job_id, attempt, error)`: it will run again

The last three are sent in the process that runs the job, outside any transaction of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.dispatch import Signal

from .exceptions import InvalidOption


class TaskSignal(Signal):
    """A signal whose senders are tasks."""

    def connect(
        self, receiver: Any, sender: Any = None, weak: bool = True, dispatch_uid: Any = None
    ) -> None:
        """Connect a receiver to the jobs of a task, or of all.

        Raises InvalidOption for another sender, such as the name of a task: Django compares senders
        by identity, so the receiver would never be called.
        """
        if sender is not None and not hasattr(sender, "source"):
            raise InvalidOption(
                f"sender={sender!r}: it must be a task made by @task, as in sender=report. For the "
                "jobs of other callables, leave sender out and compare the argument `task`",
                option="sender",
                value=sender,
            )
        super().connect(receiver, sender, weak, dispatch_uid)


job_enqueued = TaskSignal()
"""Sent after the job's row was inserted, in the caller's transaction."""
job_started = TaskSignal()
"""Sent before each run."""
job_finished = TaskSignal()
"""Sent after a run with a final state, before that is stored."""
job_retried = TaskSignal()
"""Sent after a failed attempt that another one follows."""

_CONTEXT = "a class of the setting CONTEXT, which carries a value to the run"
_FINISHED = "job_finished of django_tenantqueue.signals, with state"
_WRAPPERS = "the setting WRAPPERS"

ELSEWHERE = {
    "after_task_publish": "job_enqueued of django_tenantqueue.signals",
    "before_task_publish": f"{_CONTEXT}, or the hook enqueue(job) of @task(hooks=…)",
    "job_completed": _FINISHED,
    "job_failed": f"{_FINISHED} 'error' and the exception as error",
    "job_succeeded": f"{_FINISHED} 'success'",
    "task_failure": f"{_FINISHED} 'error' and the exception as error",
    "task_postrun": f"{_WRAPPERS}, for code around each run",
    "task_prerun": f"job_started of django_tenantqueue.signals, or {_WRAPPERS}",
    "task_retry": "job_retried of django_tenantqueue.signals",
    "task_success": f"{_FINISHED} 'success'",
}
"""Signals of Celery and others, and what is used here."""

if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        """Say what is used in place of a known name: `from … import` shows an ImportError alone."""
        if name in ELSEWHERE:
            raise ImportError(f"{__name__} has no {name!r}: use {ELSEWHERE[name]}", name=name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
