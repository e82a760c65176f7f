"""A process of another system as one that runs what dispatchers send: `run_claim()`.

Such a process has a row, and a lock that shows that it lives, as a child of a supervisor has. Its
loop is the claim loop of a worker without room for claims: it takes jobs over instead. It stores
ends, starts and progress, and it interrupts jobs that are cancelled or run for too long.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import signal
import socket
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import psycopg
from django.db import close_old_connections

from .. import __version__
from ..conf import get_settings
from ..exceptions import Cancelled, TenantQueueError
from ..execution.connection_state import close_ended_connections, reset_connections
from ..execution.current_job import RunningJob
from ..execution.job_log import about_id, name_worker
from ..execution.outcome import Outcome, judge
from ..execution.run import run_async, run_sync
from ..executors import Claim, Executor
from ..models.worker import SILENT
from ..operations.rescue import last_words
from ..queries import workers as queries
from ..queries.claim import MOST_ROOM
from ..queries.workers import NewWorker
from .child import orm_thread
from .child.executors import raise_in_thread
from .child.loop import ClaimLoop
from .child.return_claims import RETRIABLE
from .config import KILL_SECONDS, WorkerConfig
from .connection import PROBE_SECONDS, WorkerConnection, connect
from .shared_memory import BegunJob, SharedMemory
from .supervisor.kill_limits import said_of
from .supervisor.lease import Lease
from .supervisor.lease_watch import LeaseWatch

logger = logging.getLogger("django_tenantqueue")


class _InPlace(Executor):
    """Jobs run in the threads that take them over."""

    def __init__(self) -> None:
        self.coroutines: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = {}
        self.lock = threading.Lock()

    def submit(self, jobs: list[RunningJob]) -> None:
        """Do nothing: the thread that took a job over begins it."""

    def revoke(self, running: RunningJob) -> bool:
        """Return False: it begins at once."""
        return False

    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        """Raise `error` in the thread of the job, or cancel its coroutine."""
        found = self.coroutines.get(running.id)
        if found is not None:
            reason = "cancelled while it ran" if error is Cancelled else "it ran too long"
            with suppress(RuntimeError):  # its loop has ended
                found[0].call_soon_threadsafe(found[1].cancel, reason)
            return
        with self.lock:
            if running._thread_id is not None and running._ended is None:
                raise_in_thread(running._thread_id, known_as.get(error, error))


known_as: dict[type[TenantQueueError], type[TenantQueueError]] = {}
"""Errors that stand for ours where the tasks of another system expect their own. Subclasses."""

_Wanted = tuple[Claim, "Future[RunningJob | None]"]


class TakeLoop(ClaimLoop):
    """Takes over the jobs that dispatchers have sent to this process, and stores their ends."""

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        self.in_place = _InPlace()
        self.claimed_jobs.threads = self.claimed_jobs.loop = self.in_place
        self._wanted_claims: deque[_Wanted] = deque()

    def want(self, claim: Claim) -> Future[RunningJob | None]:
        """Take a claim over soon; called in any thread. The result is None when it was lost."""
        future: Future[RunningJob | None] = Future()
        self._wanted_claims.append((claim, future))
        self.waiter.wake()
        return future

    def _duties(self, now: float) -> None:
        self._take_over()
        super()._duties(now)

    def _take_over(self) -> None:
        wanted: list[_Wanted] = []
        while self._wanted_claims:
            wanted.append(self._wanted_claims.popleft())
        if not wanted:
            return
        claims = {(c.job_id, c.worker_id, c.claim_seq) for c, _ in wanted}
        try:
            taken = queries.take_over(self.connection, self.worker_id, sorted(claims))
        except RETRIABLE as error:
            # an operator's transaction holds a row, for example: the jobs are sent again
            logger.info("taking over %d jobs failed: %s", len(wanted), error)
            taken = []
        except BaseException:
            self._wanted_claims.extendleft(reversed(wanted))
            raise
        jobs = {
            (one.claimed.id, one.claimed.claim_seq): RunningJob(
                one.claimed, tenant=one.tenant, queue=one.queue
            )
            for one in taken
        }
        self.claimed_jobs.hand_out(jobs.values())
        for claim, future in wanted:
            future.set_result(jobs.pop((claim.job_id, claim.claim_seq), None))


class RemoteProcess:
    """This process, as one that runs the jobs of one executor."""

    def __init__(self, executor: str, name: str) -> None:
        self.name = name
        self.pid = os.getpid()
        self._alias = get_settings().database
        self._shared_memory = SharedMemory(5 * MOST_ROOM)  # of further jobs no hard limit is kept
        self._is_closing = threading.Event()
        self._lease = Lease(self._alias, name)
        self.worker_id = self._lease.register(
            NewWorker(
                name=name[:200],
                host=socket.gethostname(),
                pid=self.pid,
                supervisor_pid=os.getppid(),
                version=__version__,
                role="runner",
                executor=executor,
            )
        )
        name_worker(name)
        orm_thread.install()
        config = WorkerConfig(self._alias, name, threads=0, async_slots=0)
        self.loop = TakeLoop(
            config, self.worker_id, self._connect(), self._connect, self._shared_memory
        )
        self._threads = [
            threading.Thread(target=target, name=f"tenantqueue-{target.__name__}", daemon=True)
            for target in (self._drive, self._watch)
        ]
        for thread in self._threads:
            thread.start()
        self._lease_watch = LeaseWatch(self._lease, self._die_unleased)
        self._lease_watch.start()

    def _connect(self) -> WorkerConnection:
        return connect(self._alias, f"tenantqueue {self.name}")

    def run(self, claim: Claim) -> bool:
        """Take a job over and run it in this thread; False: the claim was lost."""
        running = self.loop.want(claim).result()
        if running is None:
            logger.debug(
                "job %s was already taken over, or its claim was lost",
                claim.job_id,
                extra=about_id(claim.job_id),
            )
            return False
        close_old_connections()
        close_ended_connections()
        context = contextvars.copy_context()
        outcome: Outcome | None = None
        try:
            if running._claimed.is_async:
                outcome = context.run(self._run_coroutine, running)
            else:
                outcome = context.run(run_sync, running, self.worker_id)
            with self.loop.in_place.lock:  # from here on nothing interrupts this job
                pass
        except BaseException as error:  # noqa: BLE001 - a slot would be lost
            outcome = outcome or judge(running, None, error)
        self.loop.report(running, outcome)
        reset_connections()
        return True

    def _run_coroutine(self, running: RunningJob) -> Outcome:
        async def main() -> Outcome:
            task = asyncio.current_task()
            assert task is not None, "this is a coroutine"
            self.loop.in_place.coroutines[running.id] = (asyncio.get_running_loop(), task)
            try:
                return await run_async(running)
            finally:
                self.loop.in_place.coroutines.pop(running.id, None)

        return asyncio.run(main())

    # threads

    def _drive(self) -> None:
        """Run the loop until this process closes; end the process when that fails."""
        try:
            while not self._is_closing.is_set():
                self.loop.wait(self.loop.run_once())
            end = time.monotonic() + KILL_SECONDS
            while not self.loop.drained() and time.monotonic() < end:
                self.loop.wait(min(0.1, self.loop.run_once()))
            self.loop.abandon()
            self.loop.close()
        except BaseException as error:
            logger.exception("%s: the loop of this process failed", self.name)
            self._die(f"its loop failed: {error!r}")

    def _watch(self) -> None:
        """Keep the lock, and end the process when it is lost or a job passes its hard limit."""
        while not self._is_closing.wait(PROBE_SECONDS / 4):
            self._lease.check()
            now = time.monotonic()
            for begun in self._shared_memory.begun():
                if begun.limit_at is not None and begun.limit_at <= now:
                    self._leave_word(begun)
                    self._die(f"job {begun.job_id} passed its hard time limit")

    def _leave_word(self, begun: BegunJob) -> None:
        """Write into this process's row for which job it is killed; wait for that for a second."""
        heartbeat = self.loop.heartbeat
        heartbeat.note_error(last_words(begun.job_id, said_of(begun)))
        heartbeat.hurry()
        self.loop.waiter.wake()
        end = time.monotonic() + PROBE_SECONDS
        while heartbeat.has_error and time.monotonic() < end:
            self._is_closing.wait(0.02)

    def _die_unleased(self) -> None:
        silent_seconds = self._shared_memory.silent_seconds
        if self._lease.is_overdue or (
            not self._lease.uses_locks and silent_seconds > SILENT.total_seconds()
        ):
            self._die(
                "the database has not confirmed its lock or heartbeat in time: others may run its "
                "jobs"
            )

    def _die(self, why: str) -> None:
        logger.error("%s (process %d) is killed: %s", self.name, self.pid, why)
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Store what has ended, sign off and let the lock go."""
        self._is_closing.set()
        self.loop.waiter.wake()
        for thread in self._threads:
            thread.join(2 * KILL_SECONDS)
        self._lease_watch.close()
        with suppress(psycopg.Error):
            self._lease.end(self.worker_id)
        self._lease.close()


_processes: dict[str, RemoteProcess] = {}
_lock = threading.Lock()


def run_claim(executor: str, claim: Claim, name: str) -> bool:
    """Take over and run a job in this thread, for the executor of that name.

    False: the claim was lost, or another message took it over. `name` is what the admin calls this
    process, which gets a row of Worker at its first job. Errors of the job are stored with it.
    """
    return process_of(executor, name).run(claim)


def process_of(executor: str, name: str) -> RemoteProcess:
    """Return this process, as one that runs jobs of the executor; made at the first call."""
    with _lock:
        made = _processes.get(executor)
        if made is None or made.pid != os.getpid():
            made = _processes[executor] = RemoteProcess(executor, name)
        return made


def close_processes() -> None:
    """Sign this process off, for all executors."""
    with _lock:
        for made in [one for one in _processes.values() if one.pid == os.getpid()]:
            made.close()
        _processes.clear()
