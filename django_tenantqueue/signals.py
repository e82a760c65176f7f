"""Signals. They announce; nothing in the package acts on them.

All are sent in the process that ran the job, outside any transaction of ours:

- `job_started(sender=task name, job_id, attempt)`
- `job_finished(sender=task name, job_id, state)`: the worker is about to store a final state
- `job_retried(sender=task name, job_id, attempt, error)`: it will run again
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.dispatch import Signal

job_started = Signal()
job_finished = Signal()
job_retried = Signal()

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
