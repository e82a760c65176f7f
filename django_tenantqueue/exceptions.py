"""Every exception of the package, with one base."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

ELSEWHERE = {
    "Ignore": "Permanent for an error, or return in the task",
    "MaxRetriesExceededError": (
        "current_job, as in if current_job().attempt == current_job().max_attempts, before "
        "raise Retry"
    ),
    "Reject": "Permanent, as in raise Permanent('why')",
    "SoftTimeLimitExceeded": "TimeLimitExceeded of django_tenantqueue.exceptions",
    "TimeoutError": "WaitTimeout of django_tenantqueue.exceptions",
}
"""Exceptions of Celery, and what is used here."""

if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        """Say what is used in place of a known name: `from … import` shows an ImportError alone."""
        if name in ELSEWHERE:
            raise ImportError(f"{__name__} has no {name!r}: use {ELSEWHERE[name]}", name=name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class TenantQueueError(Exception):
    """Base of all errors raised by django_tenantqueue."""


class InvalidOption(TenantQueueError, ValueError):
    """An option of a task, of `.using()` or of a setting is unknown or has a wrong value."""


class UnknownQueue(InvalidOption):
    """A routing names a queue that does not exist, or `STRICT_QUEUES` does not make it."""


class InvalidArgument(TenantQueueError, ValueError):
    """An argument of a job cannot be stored as JSON."""


class NotAllowed(TenantQueueError):
    """The callable may not be run.

    It is neither a registered task nor listed in CALLABLES, or it is internal to this package, or
    it is a coroutine and a wrapper does not support coroutines.
    """


class UnknownTask(TenantQueueError, LookupError):
    """No task of that name is registered in this process."""


class QueueRetired(TenantQueueError):
    """The tenant queue takes no new jobs."""


class QueueFull(TenantQueueError):
    """As many jobs wait in the tenant queue as its `max_waiting` allows: it takes no more now."""

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
    """Another job has the unique key, and the strategy is `raise`.

    `job_id` is that job's id; None when both are inputs of one bulk call.
    """

    def __init__(self, job_id: int | None, key: str = "") -> None:
        whose = "an earlier input of the same call" if job_id is None else f"job {job_id}"
        super().__init__(f"{whose} has the unique key {key!r}; nothing was enqueued")
        self.job_id = job_id
        self.key = key

    def __reduce__(self) -> tuple[type[DuplicateJob], tuple[int | None, str]]:
        return type(self), (self.job_id, self.key)


class IdempotencyKeyReused(TenantQueueError):
    """A request of the HTTP API has an `Idempotency-Key` that another request had."""


class RequestRefused(TenantQueueError):
    """A request of an HTTP API is answered with an error: `status` and `detail` say which."""

    def __init__(
        self, status: int, detail: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


class JobNotFound(TenantQueueError, LookupError):
    """No job has that id (any more)."""


class JobReadOnly(TenantQueueError, TypeError):
    """A Job was saved or deleted through the ORM; changes go through django_tenantqueue.control."""


class TransitionRefused(TenantQueueError):
    """The job is not in a state from which the wanted change is possible."""


class MonitorEnded(TenantQueueError):
    """The monitor has ended or was cancelled: it takes no more details."""


class WaitTimeout(TenantQueueError, TimeoutError):
    """`Job.wait()` gave up before the job was finished."""


class ClaimLost(TenantQueueError):
    """This run no longer owns its job: it was rescued, returned or finished by someone else."""


class Cancelled(TenantQueueError):
    """Raised inside a task whose cancellation was requested."""


class TimeLimitExceeded(TenantQueueError):
    """Raised inside a task that ran longer than its timeout."""


class WorkerDied(TenantQueueError):
    """The worker process that ran a job died. Never raised: the class of the error kept with it."""


class HardTimeLimitExceeded(TenantQueueError):
    """The worker process was killed since a run passed its hard time limit. Never raised: the class
    of the error kept with the job."""


class MemoryLimitExceeded(TenantQueueError):
    """The worker process was killed since it took too much memory. Never raised: the class of the
    error kept with the jobs that may be the reason."""


class TransactionLeftOpen(TenantQueueError):
    """A task ended with a transaction or an atomic block open that it had begun."""


class DeliveryFailed(TenantQueueError):
    """A receiver of alerts did not take a message."""


class ResultRefused(TenantQueueError):
    """The return value of a task cannot be stored."""


class Unsupported(TenantQueueError):
    """The database, the server or the open transaction cannot do what is asked of it."""


class Permanent(TenantQueueError):
    """Raise it in a task to end the job in `error` without another attempt."""


class Retry(TenantQueueError):
    """Raise it in a task to run the job again, whatever its `retry_when` says.

    `after` is seconds or a timedelta; None takes the task's own backoff. The attempt counts:
    when it was the last one, the job ends in `error`.
    """

    def __init__(
        self, message: str = "", *, after: float | timedelta | None = None, **unknown: Any
    ) -> None:
        if unknown:
            raise TypeError(
                f"{type(self).__name__}({next(iter(unknown))}=…): use raise Retry(after=seconds) "
                "from error; max_attempts of @task limits the attempts"
            )
        given: Any = message
        if isinstance(given, int | float | timedelta):  # it would be a message, and no time
            raise TypeError(f"{type(self).__name__}({message!r}): use after={message!r}")
        super().__init__(message or "retry asked for by the task")
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        if seconds is not None and not 0 <= seconds < 10 * 365 * 86400:
            raise InvalidOption(
                f"Retry(after={after!r}): give seconds or a timedelta between 0 and ten years"
            )
        self.after_seconds: float | None = seconds


class Postpone(Retry):
    """Raise it in a task to give the job back for `after` seconds. The attempt does not count."""

    def __init__(self, message: str = "", *, after: float | timedelta) -> None:
        super().__init__(message or "postponed by the task", after=after)


class RequestFailed(Retry):
    """The endpoint of an HTTP job gave no answer, or one that says "later": the job is retried.

    `answer` is kept with the error: the `status` of the HTTP answer and the `message` of its body,
    "" for none. None: no answer came.
    """

    def __init__(
        self,
        message: str = "",
        *,
        after: float | timedelta | None = None,
        answer: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, after=after)
        self.answer = answer


class RequestRejected(Permanent):
    """The endpoint of an HTTP job answered that another attempt would not help.

    `answer`: see RequestFailed.
    """

    def __init__(self, message: str = "", *, answer: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.answer = answer


class AddressRefused(Permanent):
    """An HTTP job may not call its host, or an address of its host."""
