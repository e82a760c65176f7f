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

import inspect
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal

from .exceptions import InvalidOption

logger = logging.getLogger("django_tenantqueue")


class TaskSignal(Signal):
    """A signal whose senders are tasks."""

    def __init__(self, name: str, *sent: str) -> None:
        super().__init__()
        self.name = name
        self.sent = ("task", "job_id", *sent)

    def connect(
        self, receiver: Any, sender: Any = None, weak: bool = True, dispatch_uid: Any = None
    ) -> None:
        """Connect a receiver to the jobs of a task, or of all.

        Raises InvalidOption for another sender, such as the name of a task: Django compares senders
        by identity, so the receiver would never be called. Also for a receiver that cannot be
        called with the arguments of the signal: it would fail at each job.
        """
        if sender is not None and not hasattr(sender, "source"):
            raise InvalidOption(
                f"sender={sender!r}: it must be a task made by @task, as in sender=report. For the "
                "jobs of other callables, leave sender out and compare the argument `task`",
                option="sender",
                value=sender,
            )
        self._check_receiver(receiver)
        super().connect(receiver, sender, weak, dispatch_uid)

    def _check_receiver(self, receiver: Any) -> None:
        try:
            signature = inspect.signature(receiver)
        except (ValueError, NameError):  # written in C, or with annotations for type checkers
            return
        except TypeError as error:
            raise InvalidOption(f"receiver: {error}", option="receiver", value=receiver) from None
        try:
            signature.bind(signal=self, sender=None, **dict.fromkeys(self.sent))
        except TypeError as error:
            raise InvalidOption(
                f"receiver {_name_of(receiver)}: {error}. {self.name} sends these: "
                f"({self.takes}, **kwargs)",
                option="receiver",
                value=receiver,
            ) from None

    @property
    def takes(self) -> str:
        """The names of the arguments of receivers, as text."""
        return ", ".join(("sender", *self.sent))

    def announce(
        self, sender: Any, *, job_id: int, extra: Mapping[str, Any] | None = None, **said: Any
    ) -> None:
        """Send it. What a receiver raises is logged, and raised no further.

        `extra`: of the log record; None: the id of the job.
        """
        for receiver, answer in self.send_robust(sender, job_id=job_id, **said):
            if isinstance(answer, Exception):
                logger.error(
                    "receiver %s of %s failed for job %s (%s)",
                    _name_of(receiver),
                    self.name,
                    job_id,
                    said["task"],
                    exc_info=answer,
                    extra=extra or {"job": job_id},
                )


def _name_of(receiver: Any) -> str:
    named = getattr(receiver, "__qualname__", type(receiver).__qualname__)
    return f"{getattr(receiver, '__module__', '')}.{named}"


job_enqueued = TaskSignal("job_enqueued", "tenant", "queue")
"""Sent after the job's row was inserted, in the caller's transaction."""
job_started = TaskSignal("job_started", "attempt")
"""Sent before each run."""
job_finished = TaskSignal("job_finished", "state", "error")
"""Sent after a run with a final state, before that is stored."""
job_retried = TaskSignal("job_retried", "attempt", "error")
"""Sent after a failed attempt that another one follows."""

_CONTEXT = "a class of the setting CONTEXT, which carries a value to the run"
_WRAPPERS = "the setting WRAPPERS"


def _use(signal: TaskSignal, more: str = "") -> str:
    return f"{signal.name} of {__name__}{more}; a receiver takes ({signal.takes}, **kwargs)"


_FAILED = _use(job_finished, ", with state 'error' and the exception as error")
_SUCCEEDED = _use(job_finished, ", with state 'success'")

ELSEWHERE = {
    "after_task_publish": _use(job_enqueued),
    "before_task_publish": f"{_CONTEXT}, or the hook enqueue(job) of @task(hooks=…)",
    "job_completed": _use(job_finished),
    "job_failed": _FAILED,
    "job_succeeded": _SUCCEEDED,
    "task_failure": _FAILED,
    "task_postrun": f"{_WRAPPERS}, for code around each run",
    "task_prerun": _use(job_started, f", or {_WRAPPERS}"),
    "task_retry": _use(job_retried),
    "task_success": _SUCCEEDED,
}
"""Signals of Celery and others, and what is used here."""

if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        """Say what is used in place of a known name: `from … import` shows an ImportError alone."""
        if name in ELSEWHERE:
            raise ImportError(f"{__name__} has no {name!r}: use {ELSEWHERE[name]}", name=name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
