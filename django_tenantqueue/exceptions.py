"""The exceptions of the core, with one base. An app in contrib has its own in its `exceptions`.

Errors that are stored with a job and never raised have their names in stored_error.py.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

_STORED = (
    "django_tenantqueue.stored_error.{}, a text to compare with job.last_error['class']: it is "
    "never raised"
)

ELSEWHERE = {
    "HardTimeLimitExceeded": _STORED.format("HARD_TIME_LIMIT_EXCEEDED"),
    "Ignore": "Permanent for an error, or return in the task",
    "MaxRetriesExceededError": (
        "current_job, as in if current_job().attempt == current_job().max_attempts, before "
        "raise Retry"
    ),
    "MemoryLimitExceeded": _STORED.format("MEMORY_LIMIT_EXCEEDED"),
    "Reject": "Permanent, as in raise Permanent('why')",
    "SoftTimeLimitExceeded": "TimeLimitExceeded of django_tenantqueue.exceptions",
    "TimeoutError": "WaitTimeout of django_tenantqueue.exceptions",
    "WorkerDied": _STORED.format("WORKER_DIED"),
}
"""Names that are no exceptions here, most of them Celery's, and what is used in their place."""

if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        """Say what is used in place of a known name: `from … import` shows an ImportError alone."""
        if name in ELSEWHERE:
            raise ImportError(f"{__name__} has no {name!r}: use {ELSEWHERE[name]}", name=name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class TenantQueueError(Exception):
    """Base of all errors raised by django_tenantqueue."""

    answer: dict[str, Any] | None = None
    """The response of an endpoint, for errors of HTTP jobs. It is stored in `Job.errors`."""


class InvalidOption(TenantQueueError, ValueError):
    """An option of a task, of `.using()` or of a setting is unknown or has a wrong value.

    `option` is its name and `value` the rejected value, where one option is at fault; else "" and
    None.
    """

    def __init__(self, message: str = "", *, option: str = "", value: Any = None) -> None:
        super().__init__(message)
        self.option = option
        self.value = value


class UnknownQueue(InvalidOption):
    """The tenant queue does not exist, and the call may not create it. Has `tenant`, `queue`."""

    def __init__(self, message: str = "", *, tenant: str = "", queue: str = "") -> None:
        super().__init__(message, option="queue", value=queue)
        self.tenant = tenant
        self.queue = queue


class InvalidArgument(TenantQueueError, ValueError):
    """An argument of a job cannot be stored as JSON, or a filter, number or call is invalid."""


class InvalidResult(TenantQueueError, ValueError):
    """The return value of a task, its statistics or its progress cannot be stored as JSON."""


class NotAllowed(TenantQueueError):
    """The callable is not allowed to run.

    It is neither a registered task nor listed in CALLABLES, or it is internal to this package, or
    it is a coroutine and a wrapper does not support coroutines.
    """


class UnknownTask(TenantQueueError, LookupError):
    """No task of that `name` is registered in this process."""

    def __init__(self, message: str = "", *, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class QueueRetired(TenantQueueError):
    """The tenant queue is retired and rejects new jobs. Has `tenant` and `queue`."""

    def __init__(self, tenant: str, queue: str) -> None:
        super().__init__(
            f"queue {queue!r} of tenant {tenant!r} is retired and takes no new jobs: reopen it in "
            "the admin, or use another queue"
        )
        self.tenant = tenant
        self.queue = queue

    def __reduce__(self) -> tuple[type[QueueRetired], tuple[str, str]]:
        return type(self), (self.tenant, self.queue)


class TenantMoving(TenantQueueError):
    """The tenant moves to another database right now, and nothing was enqueued. Has `tenant`.

    Repeat the call some seconds later, with its transaction.
    """

    def __init__(self, tenant: str) -> None:
        super().__init__(
            f"tenant {tenant!r} moves to another database right now, and nothing was enqueued: "
            "repeat the call some seconds later, with its transaction"
        )
        self.tenant = tenant

    def __reduce__(self) -> tuple[type[TenantMoving], tuple[str]]:
        return type(self), (self.tenant,)


class QueueFull(TenantQueueError):
    """The tenant queue has reached `max_waiting` and rejects new jobs.

    Has `tenant`, `queue`, `max_waiting`, and `count`, the number of rejected jobs.
    """

    def __init__(self, tenant: str, queue: str, max_waiting: int, count: int = 1) -> None:
        super().__init__(
            f"queue {queue!r} of tenant {tenant!r} is full: with {count} more it would have more "
            f"ready jobs than max_waiting={max_waiting} allows. Enqueue later, or raise "
            "max_waiting of the queue in the admin or with control.tune(queue=…, max_waiting=…)"
        )
        self.tenant = tenant
        self.queue = queue
        self.max_waiting = max_waiting
        self.count = count

    def __reduce__(self) -> tuple[type[QueueFull], tuple[str, str, int, int]]:
        return type(self), (self.tenant, self.queue, self.max_waiting, self.count)


class DuplicateJob(TenantQueueError):
    """Another job has the unique `key`, and `on_conflict` is `raise`.

    `job_id` is that job's id; None when both are inputs of one bulk call.
    """

    def __init__(self, job_id: int | None, key: str = "") -> None:
        whose = "an earlier input of the same call" if job_id is None else f"job {job_id}"
        super().__init__(
            f"{whose} has the unique key {key!r}; nothing was enqueued. To get that job instead of "
            "this error, leave out on_conflict='raise'"
        )
        self.job_id = job_id
        self.key = key

    def __reduce__(self) -> tuple[type[DuplicateJob], tuple[int | None, str]]:
        return type(self), (self.job_id, self.key)


class JobNotFound(TenantQueueError, LookupError):
    """There is no job of that id, or its row does not exist any more. Has `job_id`."""

    def __init__(self, message: str = "", *, job_id: int | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id


class JobReadOnly(TenantQueueError, TypeError):
    """A Job was saved or deleted through the ORM; changes go through django_tenantqueue.control."""


class InvalidState(TenantQueueError):
    """The state of a job, monitor or tenant does not allow the change."""


class MonitorEnded(InvalidState):
    """The monitor has ended or was cancelled, and accepts no details. Has `monitor_id`."""

    def __init__(self, monitor_id: int, name: str = "") -> None:
        super().__init__(
            f"monitor {monitor_id} ({name!r}) has ended and takes no more details: start another "
            "one, or start it with keep_open=True and close() it"
        )
        self.monitor_id = monitor_id
        self.name = name

    def __reduce__(self) -> tuple[type[MonitorEnded], tuple[int, str]]:
        return type(self), (self.monitor_id, self.name)


class WaitTimeout(TenantQueueError, TimeoutError):
    """`wait()` of a job or a monitor timed out before it ended.

    Has `seconds`, `job_id`, and the job's `state` then. Of a monitor, `job_id` is its `anchor_id`
    and `state` the status of its progress.
    """

    def __init__(
        self,
        job_id: int,
        state: str,
        seconds: float,
        in_test: bool = False,
        what: str = "",
        why: str = "",
    ) -> None:
        meant = "wait longer with timeout=…, or see on its page in the admin why it has not ended"
        if in_test:
            meant = "in a test use run_pending() or eager() of django_tenantqueue.testing"
        elif why.startswith("attempt"):
            meant = "wait longer with timeout=…, or limit the attempts with max_attempts=1"
        told = f"{why}: " if why else ""
        super().__init__(
            f"{what or f'job {job_id}'} is still {state} after {seconds} s: {told}{meant}"
        )
        self.job_id = job_id
        self.state = state
        self.seconds = seconds
        self._told = (in_test, what, why)

    def __reduce__(self) -> tuple[type[WaitTimeout], tuple[Any, ...]]:
        return type(self), (self.job_id, self.state, self.seconds, *self._told)


class ClaimLost(TenantQueueError):
    """This run no longer owns its job, which was rescued, returned or finished elsewhere."""


class Cancelled(TenantQueueError):
    """Raised inside a task whose cancellation was requested: clean up, and do not suppress it.

    A task may raise it itself to end its job as `cancelled`.
    """


class TimeLimitExceeded(TenantQueueError):
    """Raised inside a task that exceeds its soft time limit."""


class TransactionLeftOpen(TenantQueueError):
    """A task ended without closing a transaction or an atomic block that it opened."""


class Unsupported(TenantQueueError):
    """The database, the server, the open transaction or the installed apps cannot do this."""


class Permanent(TenantQueueError):
    """Raise it in a task to end the job in `error` without another attempt."""


class Retry(TenantQueueError):
    """Raise it in a task to retry the job, regardless of its `retry_when`.

    `after` is seconds or a timedelta; None: the task's backoff. The attempt counts: after the
    last one the job ends in `error`. `after_seconds` is the wait in seconds.
    """

    def __init__(
        self, message: str = "", *, after: float | timedelta | None = None, **unknown: Any
    ) -> None:
        super().__init__(message or "retry asked for by the task")
        self.after_seconds: float | None = _after_seconds(self, message, after, unknown)


class Postpone(TenantQueueError):
    """Raise it in a task to return the job to its queue and run it after `after` seconds.

    The attempt does not count. `except Retry` does not catch it. `after_seconds` is
    the wait in seconds.
    """

    def __init__(self, message: str = "", *, after: float | timedelta, **unknown: Any) -> None:
        super().__init__(message or "postponed by the task")
        self.after_seconds: float = _after_seconds(self, message, after, unknown) or 0.0


def _after_seconds(
    error: Exception, message: object, after: float | timedelta | None, unknown: dict[str, Any]
) -> float | None:
    """Return the wait in seconds; None: none was given. Raises TypeError, InvalidOption."""
    name = type(error).__name__
    if unknown:
        raise TypeError(
            f"{name}({next(iter(unknown))}=…): use raise {name}(after=seconds) from error; "
            "max_attempts of @task limits the attempts"
        )
    if isinstance(message, int | float | timedelta):  # it would be a message, and no time
        raise TypeError(f"{name}({message!r}): use after={message!r}")
    seconds = after.total_seconds() if isinstance(after, timedelta) else after
    if seconds is not None and not 0 <= seconds < 10 * 365 * 86400:
        raise InvalidOption(
            f"{name}(after={after!r}): give seconds or a timedelta between 0 and ten years",
            option="after",
            value=after,
        )
    return seconds
