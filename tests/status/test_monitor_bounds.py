"""Each cause that bounds a monitor, and who set it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.utils import timezone

from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    MonitorAddition,
    MonitorPace,
    QueueRate,
    Session,
    TaskControl,
    TenantQueue,
    UserLimit,
)
from django_tenantqueue.operations import control, monitor_control
from django_tenantqueue.operations.actor import acting_as
from django_tenantqueue.states import State
from django_tenantqueue.status.explanation import Bound, MonitorAnswer, explain_monitor
from tests.factories import make_job, make_jobs, make_queue, make_worker

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOOP = "tests.testapp.tasks.noop"


class Work(NamedTuple):
    """A monitor, and the queue of its details."""

    monitor: ConcurrentJobMonitor
    queue: TenantQueue

    def add(self, count: int, **columns: Any) -> list[int]:
        """Add details, by default ready ones."""
        MonitorAddition.objects.create(monitor=self.monitor, details=count)
        values = {"monitor_id": self.monitor.pk, "session_key": None, **columns}
        return make_jobs(self.queue, count, **values)

    def line(self, count: int) -> None:
        self.add(count, state=State.HELD, held_by="monitor")

    def answer(self) -> MonitorAnswer:
        """Return what bounds the monitor, as its row is now."""
        self.monitor.refresh_from_db()
        return explain_monitor("default", self.monitor, self.monitor.progress())

    def codes(self) -> list[str]:
        return [bound.cause.code.value for bound in self.answer().bounds]

    def only(self) -> Bound:
        (bound,) = self.answer().bounds
        return bound


def make_work(
    queue: dict[str, Any] | None = None,
    anchor: dict[str, Any] | None = None,
    *,
    is_open: bool = False,
    **columns: Any,
) -> Work:
    """Make a monitor without details that has its turn, in a queue of its own."""
    made = make_queue(**{"tenant": "acme", "num_slots": None, **(queue or {})})
    values = {"name": "import", "parallel": 2, "anchor_id": 0, "created_at": timezone.now()}
    monitor = ConcurrentJobMonitor.objects.create(
        **{**values, "tenant": "acme", "keep_open": is_open, **columns}
    )
    held = {"state": State.HELD, "held_by": "details", "session_key": None}
    (anchor_id,) = make_jobs(made, 1, **{**held, "monitor_id": monitor.pk, **(anchor or {})})
    ConcurrentJobMonitor.objects.filter(pk=monitor.pk).update(anchor_id=anchor_id)
    return Work(monitor, made)


def paused() -> Work:
    work = make_work()
    work.line(3)
    with acting_as("grace", "admin"):
        monitor_control.pause_monitors([work.monitor.pk])
    return work


def cancelled() -> Work:
    work = make_work(cancelled_at=timezone.now())
    work.add(1, state=State.RUNNING)
    return work


def stopped() -> Work:
    work = make_work(stop_after_failures=1)
    work.add(1, state=State.ERROR)
    work.line(2)
    return work


def parallel_zero() -> Work:
    work = make_work(parallel=0)
    work.line(1)
    return work


def behind_a_job() -> Work:
    Session.objects.create(kind="serial", tenant="acme", key="ledger", gate_key="acme/ledger")
    work = make_work(
        anchor={"held_by": "session", "session_key": "acme/ledger"}, session_key="acme/ledger"
    )
    work.line(2)
    make_job(work.queue, state=State.RUNNING, session_key="acme/ledger")
    return work


def own_parallel() -> Work:
    work = make_work(parallel=2)
    work.add(2, state=State.RUNNING)
    work.line(5)
    return work


def interval() -> Work:
    work = make_work(parallel=2, interval_seconds=60)
    work.add(1, state=State.RUNNING)
    work.line(5)
    MonitorPace.objects.create(monitor=work.monitor, fed_at=timezone.now())
    return work


def not_fed_yet() -> Work:
    work = make_work()
    work.line(5)
    return work


def open_monitor() -> Work:
    return make_work(is_open=True)


def slots_of_queue() -> Work:
    make_worker(threads=50)
    work = make_work({"num_slots": 2}, parallel=40)
    work.add(2, state=State.RUNNING)
    work.add(38)
    work.line(60)
    return work


def slots_taken_by_others() -> Work:
    make_worker(threads=50)
    work = make_work({"num_slots": 2}, parallel=2)
    make_jobs(work.queue, 2, state=State.RUNNING)
    work.add(2)
    return work


def paused_queue() -> Work:
    make_worker()
    work = make_work()
    work.add(2)
    with acting_as("grace", "admin"):
        control.pause([work.queue.pk])
    return work


def queue_without_slots() -> Work:
    make_worker()
    work = make_work({"num_slots": 0})
    work.add(1)
    return work


def spent_rate() -> Work:
    make_worker()
    work = make_work({"max_per_second": 0.001, "burst": 1})
    QueueRate.objects.create(queue=work.queue, debt=1.0, as_of=timezone.now())
    work.add(2)
    return work


def no_worker() -> Work:
    work = make_work()
    work.add(2)
    return work


def workers_leave() -> Work:
    make_worker(draining=True)
    return no_worker()


def no_worker_takes_it() -> Work:
    make_worker(queues=["mail"])
    return no_worker()


def no_threads() -> Work:
    make_worker(threads=0)
    return no_worker()


def busy_workers() -> Work:
    worker = make_worker(threads=1)
    make_job(state=State.RUNNING, worker_id=worker.pk)
    return no_worker()


def other_jobs_first() -> Work:
    make_worker()
    work = make_work()
    make_jobs(work.queue, 3)
    work.add(2)
    return work


def another_monitor_first() -> Work:
    make_worker()
    other, work = make_work(name="first"), make_work({"name": "unused"})
    other.add(3)
    make_jobs(other.queue, 2, monitor_id=work.monitor.pk)
    MonitorAddition.objects.create(monitor=work.monitor, details=2)
    return work


def user_limit() -> Work:
    UserLimit.objects.create(
        kind="limit_user", tenant="acme", key="ada", gate_key="acme/ada", num_slots=1
    )
    work = make_work(parallel=5)
    work.add(1, state=State.RUNNING, limit_user="acme/ada")
    work.add(4, state=State.HELD, held_by="limit_user", limit_user="acme/ada")
    return work


def paused_user() -> Work:
    UserLimit.objects.create(
        kind="limit_user", tenant="acme", key="ada", gate_key="acme/ada", paused=True
    )
    work = make_work()
    work.add(2, state=State.HELD, held_by="limit_user", limit_user="acme/ada")
    return work


def user_without_slots() -> Work:
    UserLimit.objects.create(
        kind="limit_user", tenant="acme", key="ada", gate_key="acme/ada", num_slots=0
    )
    work = make_work()
    work.add(2, state=State.HELD, held_by="limit_user", limit_user="acme/ada")
    return work


def exclusive_key() -> Work:
    work = make_work(parallel=5)
    make_job(state=State.RUNNING, exclusive_key="acme/x")
    work.add(2, state=State.HELD, held_by="exclusive", exclusive_key="acme/x")
    return work


def paused_task() -> Work:
    TaskControl.objects.create(task=NOOP, paused=True)
    work = make_work()
    work.add(3, state=State.HELD, held_by="task")
    return work


def capped_task() -> Work:
    TaskControl.objects.create(task=NOOP, num_slots=1)
    make_job(state=State.RUNNING, task_at=timezone.now())
    work = make_work()
    work.add(3, state=State.HELD, held_by="task")
    return work


def task_without_slots() -> Work:
    TaskControl.objects.create(task=NOOP, num_slots=0)
    work = make_work()
    work.add(3, state=State.HELD, held_by="task")
    return work


def backoff() -> Work:
    make_worker()
    work = make_work()
    work.add(2, state=State.SCHEDULED, run_at=timezone.now() + HOUR, attempt=1)
    return work


@pytest.mark.parametrize(
    ("make", "code", "sentence", "details"),
    [
        (cancelled, "monitor_cancelled", "It was cancelled. Its unfinished details are being", 0),
        (paused, "monitor_paused", "It is paused: no further detail starts.", 0),
        (stopped, "monitor_stopped", "It has stopped: 1 detail has failed.", 0),
        (parallel_zero, "monitor_without_slots", "Its “parallel” is 0: no detail starts.", 0),
        (own_parallel, "monitor_full", "It has 2 details in flight, as many as its “parallel”", 0),
        (interval, "monitor_interval", "It starts details every 1 min 0 s: the next time in ", 0),
        (
            not_fed_yet,
            "not_released",
            "It has room for 2 more details, which are about to start",
            0,
        ),
        (open_monitor, "monitor_open", "It is open: it waits for more details, or to be closed", 0),
        (
            slots_of_queue,
            "queue_bounds_monitor",
            "Its “parallel” is 40, but its queue acme / default has 2 slots, so at most 2",
            38,
        ),
        (slots_taken_by_others, "queue_full", "All 2 slots of its queue are taken", 2),
        (paused_queue, "queue_paused", "Its queue is paused.", 2),
        (queue_without_slots, "queue_without_slots", "Its queue has 0 slots.", 1),
        (spent_rate, "rate_spent", "Its queue may start 0.001 jobs in a second", 2),
        (no_worker, "no_worker", "No worker runs.", 2),
        (workers_leave, "workers_leave", "Every worker drains or stops.", 2),
        (no_worker_takes_it, "no_worker_takes", "does not take queue “default” of tenant", 2),
        (no_threads, "no_worker_of_kind", "It needs a thread, and the workers", 2),
        (busy_workers, "workers_full", "All 1 threads of the workers that take its queue", 2),
        (other_jobs_first, "jobs_before", "3 jobs of its queue are before it.", 2),
        (another_monitor_first, "jobs_before", "Its details wait behind those of monitor #", 2),
        (user_limit, "user_full", "Its user has reached the limit: 1 job may run at once", 4),
        (paused_user, "user_paused", "The limit of its user is paused.", 2),
        (user_without_slots, "user_without_slots", "Its user may run 0 jobs at once.", 2),
        (exclusive_key, "exclusive_held", "has the same exclusive key and runs first.", 2),
        (paused_task, "task_paused", "Its task is paused.", 3),
        (capped_task, "task_full", "Its task has reached its limit: 1 job may run at once", 3),
        (task_without_slots, "task_without_slots", "Its task may run 0 jobs at once.", 3),
        (backoff, "backoff", "They have failed and wait for another attempt (job #", 2),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_bound_is_named_when_it_is_the_only_one(
    make: Callable[[], Work], code: str, sentence: str, details: int
) -> None:
    work = make()

    bound = work.only()

    assert bound.cause.code == code
    assert sentence in bound.cause.sentence
    assert bound.cause.remedy
    assert bound.details == details


def test_session_is_named_with_the_job_before_it() -> None:
    work = behind_a_job()

    assert work.codes() == ["monitor_waits", "session_busy"]
    waits, busy = (bound.cause for bound in work.answer().bounds)
    assert waits.sentence == "It waits for its turn in its session."
    assert f"behind job #{busy.jobs[0]} (running)" in busy.sentence


@pytest.mark.parametrize(
    ("columns", "code", "told"),
    [
        ({"paused": True}, "session_paused", "Its session is paused."),
        (
            {"halted_at": timezone.now(), "halted_by": 7},
            "session_halted",
            "Its session halted because job #7 failed or was cancelled.",
        ),
    ],
)
def test_session_is_named_when_it_lets_nothing_through(
    columns: dict[str, Any], code: str, told: str
) -> None:
    work = behind_a_job()
    Session.objects.update(**columns)

    found = {bound.cause.code.value: bound.cause.sentence for bound in work.answer().bounds}

    assert set(found) == {code, "monitor_waits", "session_busy"}
    assert found[code] == told


def test_missing_workers_are_named_when_details_wait_for_another_attempt() -> None:
    work = make_work()
    work.add(2, state=State.SCHEDULED, run_at=timezone.now() + HOUR, attempt=1)

    assert work.codes() == ["no_worker", "backoff"]


def test_pause_names_who_did_it() -> None:
    done_by = paused().only().cause.done_by

    assert done_by is not None
    assert (done_by.name, done_by.source) == ("grace", "admin")


def test_pause_of_its_queue_names_who_did_it() -> None:
    done_by = paused_queue().only().cause.done_by

    assert done_by is not None
    assert done_by.name == "grace"


def test_nothing_bounds_it_when_all_that_is_left_is_in_flight() -> None:
    make_worker()
    work = make_work(parallel=5)
    work.add(2, state=State.RUNNING)
    work.add(1)

    answer = work.answer()

    assert answer.bounds == []
    assert answer.sentence == "Nothing limits it: all remaining details are in flight."


def test_its_own_parallel_is_not_blamed_when_its_queue_has_too_few_slots() -> None:
    work = slots_of_queue()

    assert work.codes() == ["queue_bounds_monitor"]
    assert work.answer().sentence == "2 of the 100 remaining details are running."


def test_several_bounds_are_listed_worst_first() -> None:
    make_worker()
    work = make_work({"paused": True}, parallel=3)
    work.add(1)
    work.add(1, state=State.SCHEDULED, run_at=timezone.now() + HOUR, attempt=1)
    work.line(9)
    MonitorPace.objects.create(monitor=work.monitor, fed_at=timezone.now())
    ConcurrentJobMonitor.objects.filter(pk=work.monitor.pk).update(interval_seconds=60)

    assert work.codes() == ["queue_paused", "monitor_interval", "backoff"]


def test_callback_is_explained_when_all_details_have_ended() -> None:
    make_worker()
    ready = {"state": State.READY, "held_by": None}
    work = make_work({"paused": True}, anchor=ready)
    work.add(2, state=State.SUCCESS)

    answer = work.answer()

    assert answer.sentence.startswith("All details have ended. Its callback: It is ready")
    assert [bound.cause.code.value for bound in answer.bounds] == ["queue_paused"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [({}, "It has ended."), ({"cancelled_at": timezone.now()}, "It was cancelled.")],
)
def test_ended_monitor_has_no_bounds(columns: dict[str, Any], told: str) -> None:
    work = make_work(anchor={"state": State.SUCCESS, "held_by": None}, **columns)

    assert work.answer() == MonitorAnswer(told, [])


def test_details_of_two_queues_are_both_explained() -> None:
    make_worker()
    work = make_work({"paused": True}, parallel=9)
    other = Work(work.monitor, make_queue("acme", "mail", num_slots=0))
    work.add(3)
    other.add(2)

    found = {(b.cause.code.value, b.details) for b in work.answer().bounds}

    assert found == {("queue_paused", 3), ("queue_without_slots", 2)}
