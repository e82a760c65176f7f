"""Help for users' tests: run what was enqueued, inside the test's own transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any
from unittest import mock

from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings
from django.utils import timezone
from psycopg.pq import TransactionStatus

from ..conf import database, get_settings
from ..coroutines import twin
from ..databases import databases_of_test
from ..exceptions import TransactionLeftOpen
from ..execution.connection_state import open_blocks, status_of
from ..execution.current_job import RunningJob
from ..execution.outcome import Outcome, ends_of_unreturned
from ..execution.run import run_async, run_sync
from ..features import Feature, hooks
from ..gate_keys import JobGates
from ..models import Job, TenantQueue
from ..operations.claim import Claimer, Filters, Verdict
from ..operations.gates import follow_later, keys_of, release
from ..operations.maintain import expire
from ..operations.task_gate import take
from ..operations.unique import keys_to_free
from ..queries import finish as finish_queries
from ..queries import round_trip as round_trip_queries
from ..queries.claim import ClaimedJob
from ..queries.control import promote_jobs
from ..queries.finish import Failed, Finished
from ..queries.round_trip import Exchange
from ..queries.unique import free_keys
from ..states import CENTURY
from .assertions import (
    aassert_enqueued,
    aenqueued_jobs,
    arefute_enqueued,
    assert_enqueued,
    captured_jobs,
    enqueued_jobs,
    refute_enqueued,
)
from .blocks import travel

TEST_WORKER = 0
"""Worker id of jobs run by run_pending()."""


def run_pending(*, scheduled: bool = False, limit: int = 1000) -> list[Job]:
    """Run the jobs that are ready, in this thread and connection; return them as they ended.

    Works inside a TestCase: what the test enqueued need not be committed, and the after-commit
    hooks of the test and of the jobs are run. Jobs go one at a time in the order in which a worker
    would claim them; those that they enqueue run, too. Errors of tasks do not surface here: look
    at the returned jobs' `state` and `errors`. Due schedules fire and expired jobs are cancelled
    before the first job. Jobs of executors run here, too.

    `scheduled` also runs jobs whose time has not come, retries among them. `limit` ends a test
    whose jobs enqueue each other for ever; RuntimeError says so.
    """
    ran: list[tuple[str, int]] = []
    places = databases_of_test()
    while True:
        before = len(ran)
        for using in places:
            with database(using if len(places) > 1 else None):
                _run_all(using, ran, scheduled=scheduled, limit=limit)
        if len(places) == 1 or len(ran) == before:  # else jobs may have enqueued jobs elsewhere
            break
    found = {
        (using, job_id): job
        for using in places
        for job_id, job in Job.objects.using(using)
        .find_many([job_id for at, job_id in ran if at == using])
        .items()
    }
    return [found[key] for key in dict.fromkeys(ran) if key in found]


def _run_all(using: str, ran: list[tuple[str, int]], *, scheduled: bool, limit: int) -> None:
    """Run the ready jobs of one database, and add them to `ran`."""
    executors = (None, *get_settings().executors)
    claimers = [Claimer(TEST_WORKER, Filters(executor=name)) for name in executors]
    while any(run_due(using) for run_due in hooks(Feature.run_due)) or expire(using):
        pass
    while True:
        _run_all_commit_hooks()
        _promote(using, scheduled=scheduled)
        found_by_each = (_claim_one(using, claimer) for claimer in claimers)
        claimed = next((one for one in found_by_each if one is not None), None)
        if claimed is None:
            break
        if len(ran) >= limit:
            raise RuntimeError(
                f"run_pending() has run {limit} jobs and there are still more: do they enqueue "
                "each other? Else give limit=…"
            )
        _run(using, claimed)
        ran.append((using, claimed.id))


def run_commit_hooks(using: str) -> None:
    """Run the after-commit hooks of a TestCase's transaction, which is never committed."""
    wrapper = connections[using]
    while wrapper.run_on_commit:
        entry: tuple[Any, ...] = wrapper.run_on_commit.pop(0)
        _savepoints, hook, robust = entry
        with _contained():
            try:
                hook()
            except Exception:
                if not robust:
                    raise


arun_pending = twin(run_pending)
arun_commit_hooks = twin(run_commit_hooks)


def _run_all_commit_hooks() -> None:
    while waiting := [w.alias for w in connections.all(initialized_only=True) if w.run_on_commit]:
        for alias in waiting:
            run_commit_hooks(alias)


@contextmanager
def _contained() -> Iterator[None]:
    """Keep the transactions around the block usable.

    On each connection, a transaction that the block has broken is rolled back to where the block
    began, and so is what the block left open. Closing the connection has no effect.
    """
    with ExitStack() as stack:
        outer: dict[BaseDatabaseWrapper, Any] = {}
        for wrapper in connections.all(initialized_only=True):
            if wrapper.in_atomic_block:
                outer[wrapper] = transaction.atomic(using=wrapper.alias)
                outer[wrapper]._from_testcase = True  # a durable block may be inside
                stack.enter_context(outer[wrapper])
                stack.enter_context(mock.patch.object(wrapper, "close"))
        try:
            yield
        finally:
            for wrapper in connections.all(initialized_only=True):
                own = outer.get(wrapper)
                while wrapper.atomic_blocks and wrapper.atomic_blocks[-1] is not own:
                    wrapper.atomic_blocks[-1].__exit__(TransactionLeftOpen, None, None)
                if own is not None and status_of(wrapper) == TransactionStatus.INERROR:
                    transaction.set_rollback(True, using=wrapper.alias)


def _promote(using: str, *, scheduled: bool) -> None:
    until: datetime | None = timezone.now() + CENTURY if scheduled else None
    while promoted := promote_jobs(using, most=1000, now=until):
        release(using, keys_of(promoted.values()))


def _claim_one(using: str, claimer: Claimer) -> ClaimedJob | None:
    claimer.places.forget_blocked()
    freed = 0
    while True:
        request = claimer.request(1, 0)
        request.room_async = 1
        with transaction.atomic(using=using):  # both statements of the claim need one
            answer = round_trip_queries.exchange_in_transaction(using, TEST_WORKER, request=request)
        verdict = claimer.learn(request, answer)
        freed += _set_aside(using, claimer)
        if answer.jobs:
            for extra in answer.jobs[1:]:
                _give_back(using, extra)
            granted = _admitted(using, answer.jobs[0])
            if granted is not None:
                return granted
            continue
        if verdict is Verdict.AGAIN:
            continue
        if not freed:
            return None
        claimer.places.forget_blocked()
        freed = 0


def _set_aside(using: str, claimer: Claimer) -> int:
    """Move jobs of paused and full tasks aside; return how many others became ready by that."""
    ready = 0
    while claimer.passed_over.next_at is not None:
        ready += release(using, claimer.passed_over.step(using)).ready
    return ready


def _admitted(using: str, claimed: ClaimedJob) -> ClaimedJob | None:
    """Return the claim; None if it now waits in the line of its task."""
    if not claimed.is_controlled:
        return claimed
    return next(iter(take(using, TEST_WORKER, [claimed]).granted), None)


def _give_back(
    using: str, claimed: ClaimedJob, delay_seconds: float = 0.0, reason: str | None = None
) -> None:
    wrapper = connections[using]
    wrapper.ensure_connection()
    claim = (claimed.id, claimed.claim_seq)
    returned = finish_queries.return_jobs(
        wrapper.connection,
        TEST_WORKER,
        [claim],
        delay_seconds=delay_seconds,
        errors={} if reason is None else {claim: reason},
        max_errors=get_settings().max_errors,
    )
    if not returned:
        _store(using, ends_of_unreturned(wrapper.connection, TEST_WORKER, [claim], {}, {}))


def _run(using: str, claimed: ClaimedJob) -> None:
    queue = TenantQueue.objects.using(using).get(pk=claimed.queue_id)
    running = RunningJob(claimed, tenant=queue.tenant, queue=queue.name)
    with _contained():
        if claimed.is_async:
            outcome: Outcome = async_to_sync(run_async)(running)
        else:
            outcome = run_sync(running, TEST_WORKER, open_blocks())
    if outcome.give_back is not None:
        _give_back(using, claimed, outcome.give_back, outcome.reason)
        if outcome.is_unknown:
            said = json.loads(outcome.reason or "{}").get("message")
            raise LookupError(f"job {claimed.id} ({claimed.task}) cannot run here: {said}")
        return
    finished = [outcome.finished] if outcome.finished is not None else []
    failed = [outcome.failed] if outcome.failed is not None else []
    answer = _store(using, finished, failed)
    if failed and not answer.rescheduled:
        answer = _store(using, [failed[0].as_cancelled()])
    follow_later(using, (*outcome.follow_ups, *answer.follow_ups))
    if claimed.gates is not None:
        gates = JobGates.read(claimed.gates)
        if held := keys_to_free([(claimed.id, gates)]):
            free_keys(using, held)
        release(using, keys_of([gates]))


def _store(using: str, finished: Sequence[Finished], failed: Sequence[Failed] = ()) -> Exchange:
    return round_trip_queries.exchange_in_transaction(
        using,
        TEST_WORKER,
        finished=finished,
        failed=failed,
        max_errors=get_settings().max_errors,
    )


def eager() -> override_settings:
    """Return what turns eager mode on: for `with`, or a decorator of a test or a TestCase.

    The other settings in TENANTQUEUE stay.
    """
    return override_settings(
        TENANTQUEUE={**getattr(django_settings, "TENANTQUEUE", {}), "EAGER": True}
    )


__all__ = [
    "TEST_WORKER",
    "aassert_enqueued",
    "aenqueued_jobs",
    "arefute_enqueued",
    "arun_commit_hooks",
    "arun_pending",
    "assert_enqueued",
    "captured_jobs",
    "eager",
    "enqueued_jobs",
    "refute_enqueued",
    "run_commit_hooks",
    "run_pending",
    "travel",
]

_RUN = "run_pending(), which runs everything that is ready"
ELSEWHERE = {
    "TestWorker": _RUN,
    "always_eager": "eager(), for with or as a decorator",
    "capture_jobs": "captured_jobs()",
    "drain": _RUN,
    "drain_queue": _RUN,
    "inline": "eager(), for with or as a decorator",
    "perform_enqueued_jobs": _RUN,
    "run_all": _RUN,
    "run_jobs": _RUN,
    "run_worker": _RUN,
    "assert_no_enqueued_jobs": "refute_enqueued()",
}
"""What other systems call the helpers."""

if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        """Say what is used in place of a known name: `from … import` shows an ImportError alone."""
        if name in ELSEWHERE:
            raise ImportError(f"{__name__} has no {name!r}: use {ELSEWHERE[name]}", name=name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
