"""Executors: where claimed jobs run. The interface for executors of other projects.

Slots, order, gates, rates, retries and rescue are the same for each of them: a job is handed to an
executor only after it was claimed. A worker has two of its own, for threads and for coroutines. A
dispatcher has a RemoteExecutor, which sends claims to other processes; these take them over and run
them with `run_claim()` of django_tenantqueue.worker.remote.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.module_loading import import_string

from .conf import get_settings
from .exceptions import InvalidOption, TenantQueueError
from .execution.current_job import RunningJob
from .execution.outcome import MOST_DOUBLINGS
from .models.worker import RESEND_SECONDS

logger = logging.getLogger("django_tenantqueue")

SEND_SECONDS = RESEND_SECONDS * 6
"""Longest time to send a message. Then its job is returned."""
PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts to reach a broker that is down. The last one is repeated."""


class Executor(ABC):
    """Runs claimed jobs. Its methods are called in the thread of the claim loop."""

    @abstractmethod
    def submit(self, jobs: list[RunningJob]) -> None:
        """Start these jobs in this order, without blocking.

        An exception ends the worker process, and its jobs are rescued.
        """

    @abstractmethod
    def revoke(self, running: RunningJob) -> bool:
        """Take back a job that has not started; return False when it has."""

    @abstractmethod
    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        """Interrupt a job that runs in this process with this error."""


def hard_limit(running: RunningJob) -> float | None:
    """Return the seconds of run after which a job's process is killed; None: never.

    A default is not stored with the job, so a changed setting applies to waiting jobs, too.
    """
    claimed, settings = running._claimed, get_settings()
    if claimed.hard_timeout_seconds is not None:
        return claimed.hard_timeout_seconds
    if claimed.timeout_seconds is None:
        return settings.default_hard_timeout
    grace = settings.hard_timeout_grace
    return None if grace is None else claimed.timeout_seconds + grace


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run a job once. It is lost when the job is returned or claimed again."""

    job_id: int
    worker_id: int
    claim_seq: int
    time_limit: float | None = field(default=None, compare=False)
    """Hard time limit in seconds: the process that runs the job kills itself. None: no limit. Only
    the sending process knows it."""

    def __str__(self) -> str:
        return f"{self.job_id}:{self.worker_id}:{self.claim_seq}"

    @classmethod
    def parse(cls, text: str) -> Claim:
        """Return the claim that str() has written. Raises ValueError."""
        job_id, worker_id, claim_seq = text.split(":")
        return cls(int(job_id), int(worker_id), int(claim_seq))


@dataclass(slots=True)
class _Sent:
    running: RunningJob
    submitted_at: float
    at: float | None = None
    """When it was sent last; None: not yet."""
    times: int = 0

    def is_due(self, now: float) -> bool:
        """Whether it was sent long enough ago to be sent again."""
        wait = RESEND_SECONDS * 2.0 ** min(self.times - 1, MOST_DOUBLINGS)
        return self.at is not None and now - self.at >= wait


class RemoteExecutor(Executor):
    """Sends claims to other processes. A subclass implements `send()`.

    A message may be lost or arrive twice. A message that is not taken over is sent again, and a
    claim can be taken over once. When `send()` fails, the jobs are returned, no attempt is
    counted, and the dispatcher claims no more until `ping()` succeeds.
    """

    window = 200
    """Maximum number of messages that are sent and not taken over."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        """`name`, `options`: those of TENANTQUEUE["EXECUTORS"]. Raises InvalidOption."""
        self.name = name
        self.error = ""
        """Why nothing can be sent at the moment."""
        self._worker_id = 0
        self._give_back: Callable[[RunningJob], None] = lambda _running: None
        self._sent: dict[int, _Sent] = {}
        self._last_taken = 0.0
        """When the latest of the messages was sent that have been taken."""
        self._taken_at = 0.0
        self._unsent: deque[_Sent] = deque()
        self._wanted = threading.Event()
        self._is_closing = False

    @abstractmethod
    def send(self, claims: Sequence[Claim]) -> None:
        """Send a message for each claim, in this order; called in a thread of the dispatcher.

        After any exception, all of these jobs are returned.
        """

    def ping(self) -> None:
        """Raise an exception when nothing can be sent; called every few seconds after an error."""

    def disconnect(self) -> None:
        """Close what send() has opened; called in its thread when the dispatcher ends."""

    # called in the thread of the claim loop

    def start(self, worker_id: int, give_back: Callable[[RunningJob], None]) -> None:
        """Start sending. `give_back` is called with jobs that could not be sent, in any thread."""
        self._worker_id, self._give_back = worker_id, give_back
        threading.Thread(target=self._run, name="tenantqueue-dispatch", daemon=True).start()

    @property
    def is_up(self) -> bool:
        """Whether claims can be sent, as far as is known."""
        return not self.error

    def submit(self, jobs: list[RunningJob]) -> None:
        """Send jobs soon."""
        now = time.monotonic()
        for running in jobs:
            sent = self._sent[running.id] = _Sent(running, now)
            self._unsent.append(sent)
        self._wanted.set()

    def revoke(self, running: RunningJob) -> bool:
        """Forget a job. Its message, if there is one, finds the claim lost."""
        self._sent.pop(running.id, None)
        return True

    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        """Do nothing: the process that took the job over interrupts it."""

    def taken(self, running: RunningJob) -> None:
        """Note that a job was taken over, or that its claim was lost."""
        sent = self._sent.pop(running.id, None)
        if sent is not None and sent.at is not None:
            self._last_taken = max(self._last_taken, sent.at)
            self._taken_at = time.monotonic()

    def resend_late(self, now: float) -> int:
        """Resend messages that seem to be lost; return how many. `now` is time.monotonic().

        A message seems lost when a later one was taken over, or, for the oldest, when none was
        taken over for some time.
        """
        lost = [
            one
            for one in self._sent.values()
            if one.at is not None and one.at < self._last_taken and one.is_due(now)
        ]
        if self._sent and not lost and now - self._taken_at >= RESEND_SECONDS:
            oldest = next(iter(self._sent.values()))
            lost = [oldest] if oldest.is_due(now) else []
        for one in lost:
            one.at, one.submitted_at = None, now
            self._unsent.append(one)
        if lost:
            logger.info(
                "executor %s: %d messages were not taken over, resending", self.name, len(lost)
            )
            self._wanted.set()
        return len(lost)

    def stuck(self, now: float) -> list[RunningJob]:
        """Return the jobs that could not be sent in time. `now` is time.monotonic()."""
        return [
            one.running
            for one in self._sent.values()
            if one.at is None and now - one.submitted_at > SEND_SECONDS
        ]

    def close(self) -> None:
        """Send no more."""
        self._is_closing = True
        self._wanted.set()

    # the thread that sends

    def _run(self) -> None:
        while not self._is_closing:
            self._wanted.wait()
            self._wanted.clear()
            while self._unsent and not self._is_closing:
                self._send_some()
        self.disconnect()

    def _send_some(self) -> None:
        batch: list[_Sent] = []
        while self._unsent and len(batch) < 50:
            batch.append(self._unsent.popleft())
        claims = [
            Claim(
                one.running.id,
                self._worker_id,
                one.running._claimed.claim_seq,
                hard_limit(one.running),
            )
            for one in batch
        ]
        try:
            self.send(claims)
        except Exception as error:  # noqa: BLE001 - whatever a broker's client raises
            self._failed(batch, error)
            return
        now = time.monotonic()
        for one in batch:
            one.times += 1
            one.at = now

    def _failed(self, batch: Iterable[_Sent], error: Exception) -> None:
        """Return jobs that could not be sent, and wait until ping() succeeds."""
        self.error = f"executor {self.name}: sending failed: {error!r}"
        logger.warning("%s; no jobs are claimed until it succeeds", self.error)
        left = [*batch, *self._unsent]
        self._unsent.clear()
        for one in left:
            self._give_back(one.running)
        attempt = 0
        while not self._is_closing:
            time.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
            attempt += 1
            try:
                self.ping()
            except Exception as again:  # noqa: BLE001
                logger.info("executor %s is still down, retrying: %r", self.name, again)
            else:
                logger.info("executor %s is up again", self.name)
                self.error = ""
                return


def load_executor(name: str) -> RemoteExecutor:
    """Return the executor of that name in TENANTQUEUE["EXECUTORS"]. Raises InvalidOption."""
    entry = get_settings().executors.get(name)
    if entry is None:
        known = ", ".join(map(repr, get_settings().executors)) or "none"
        raise InvalidOption(f"TENANTQUEUE['EXECUTORS'] has no executor {name!r}: it has {known}")
    try:
        backend = import_string(entry.backend)
    except ImportError as error:
        raise InvalidOption(
            f"TENANTQUEUE['EXECUTORS'][{name!r}]: {entry.backend!r} cannot be imported: {error}"
        ) from error
    if not (isinstance(backend, type) and issubclass(backend, RemoteExecutor)):
        raise InvalidOption(
            f"TENANTQUEUE['EXECUTORS'][{name!r}]: {entry.backend!r} is not a subclass of "
            "django_tenantqueue.executors.RemoteExecutor"
        )
    made: RemoteExecutor = backend(name, entry.options)
    return made
