"""Each cause that keeps a job from running, and who set it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.execution.outcome import UNKNOWN_CLASS
from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    Job,
    MonitorPace,
    QueueRate,
    Session,
    TaskControl,
    TaskRate,
    TenantQueue,
    UserLimit,
    Worker,
)
from django_tenantqueue.models.worker import Role
from django_tenantqueue.operations import control, monitor_control, session_control
from django_tenantqueue.operations.actor import acting_as
from django_tenantqueue.queries.figures import Counts, add_figures
from django_tenantqueue.states import State
from django_tenantqueue.status.explanation import Cause, Code, Explanation, explain
from django_tenantqueue.status.explanation.answer import Target, sorted_causes
from tests.factories import make_figure, make_job, make_jobs, make_queue, make_worker

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def answer(job: Job) -> Explanation:
    found = Job.objects.using("default").find(job.pk)
    assert found is not None
    return explain("default", found)


def cause(job: Job, code: Code) -> Cause:
    """Return the cause of that code; fails when the answer has none or several."""
    found = answer(job)
    wanted = [one for one in found.causes if one.code == code]
    assert len(wanted) == 1, found
    return wanted[0]


def codes(job: Job) -> list[str]:
    return [one.code.value for one in answer(job).causes]


def held(**columns: Any) -> Job:
    return make_job(state=State.HELD, **{"session_key": None, **columns})


def make_session(**columns: Any) -> Session:
    return Session.objects.create(
        kind="serial", tenant="acme", key="ledger", gate_key="acme/ledger", **columns
    )


def make_cap(user: str = "ada", **columns: Any) -> UserLimit:
    values = {"kind": "limit_user", "tenant": "acme", "key": user, "gate_key": f"acme/{user}"}
    return UserLimit.objects.create(**values, **columns)


def make_monitor(**columns: Any) -> ConcurrentJobMonitor:
    values = {
        "name": "import",
        "tenant": "acme",
        "parallel": 2,
        "anchor_id": 10**9 + ConcurrentJobMonitor.objects.count(),
        "created_at": timezone.now(),
    }
    return ConcurrentJobMonitor.objects.create(**{**values, **columns})


def detail(monitor: ConcurrentJobMonitor, queue: TenantQueue | None = None, **columns: Any) -> Job:
    return make_job(queue, **{"monitor_id": monitor.pk, **columns})


def in_line(monitor: ConcurrentJobMonitor, queue: TenantQueue | None = None) -> Job:
    values = {"state": State.HELD, "held_by": "monitor", "session_key": None}
    return detail(monitor, queue, **values)


# ready jobs: the workers


def test_nothing_holds_a_ready_job_that_a_worker_could_take() -> None:
    make_worker()
    found = answer(make_job())

    assert found.causes == []
    assert found.sentence == "It is ready, and nothing holds it: the next claim takes it."


def test_no_worker_when_none_is_registered() -> None:
    one = cause(make_job(), Code.NO_WORKER)

    assert one.sentence == "No worker runs."
    assert one.remedy == "Start one with “manage.py runworker”."


def test_no_worker_when_all_are_silent() -> None:
    make_worker(heartbeat_at=timezone.now() - timedelta(minutes=5))

    told = cause(make_job(), Code.NO_WORKER).sentence

    assert told == "No worker runs: 1 worker has sent no heartbeat for 30 s."


@pytest.mark.parametrize("order", ["draining", "stopping"])
def test_workers_leave_when_all_drain_or_stop(order: str) -> None:
    make_worker(**{order: True})

    assert codes(make_job()) == ["workers_leave"]


@pytest.mark.parametrize(
    "filters", [{"queues": ["mail"]}, {"exclude_queues": ["reports"]}, {"tenants": ["zeta"]}]
)
def test_no_worker_takes_the_queue_when_all_filter_it_out(filters: dict[str, Any]) -> None:
    make_worker(**filters)
    job = make_job(make_queue("acme", "reports"))

    one = cause(job, Code.NO_WORKER_TAKES)

    assert "does not take queue “reports” of tenant “acme”" in one.sentence
    assert "manage.py runworker --queues reports" in one.remedy


def test_no_worker_takes_the_queue_when_the_one_that_does_drains() -> None:
    make_worker(queues=["mail"])
    make_worker(draining=True)

    told = cause(make_job(), Code.NO_WORKER_TAKES).sentence

    assert "The workers that take it are draining or stopping." in told


@pytest.mark.parametrize(
    "filters", [{}, {"queues": ["reports"]}, {"exclude_queues": ["mail"]}, {"tenants": ["acme"]}]
)
def test_a_worker_takes_the_queue_when_its_filters_let_it(filters: dict[str, Any]) -> None:
    make_worker(**filters)

    assert codes(make_job(make_queue("acme", "reports"))) == []


@pytest.mark.parametrize(("column", "is_async"), [("threads", False), ("async_slots", True)])
def test_workers_have_no_place_for_its_kind(column: str, is_async: bool) -> None:
    make_worker(**{column: 0})

    assert codes(make_job(is_async=is_async)) == ["no_worker_of_kind"]


@pytest.mark.parametrize(
    ("is_async", "told"), [(False, "All 2 threads of the"), (True, "All 2 coroutine slots of the")]
)
def test_workers_are_full_when_jobs_of_its_kind_take_all(is_async: bool, told: str) -> None:
    worker = make_worker(threads=2, async_slots=2)
    job, other_kind = make_job(is_async=is_async), make_job(is_async=not is_async)
    make_jobs(make_queue(), 2, state=State.RUNNING, worker_id=worker.pk, is_async=is_async)

    assert told in cause(job, Code.WORKERS_FULL).sentence
    assert codes(other_kind) == []


def test_workers_are_not_full_when_one_has_a_free_thread() -> None:
    busy = make_worker(threads=1)
    make_worker(threads=1)
    make_job(state=State.RUNNING, worker_id=busy.pk)

    assert codes(make_job()) == []


# ready jobs: the queue


def test_queue_is_paused() -> None:
    make_worker()
    queue = make_queue(paused=True)

    one = cause(make_job(queue), Code.QUEUE_PAUSED)

    assert one.target is not None
    assert (one.target.kind, one.target.id, one.target.label) == ("queue", queue.pk, str(queue))
    assert one.done_by is None


def test_queue_has_zero_slots() -> None:
    make_worker()

    assert codes(make_job(make_queue(num_slots=0))) == ["queue_without_slots"]


def test_queue_is_full_and_names_up_to_five_of_its_jobs() -> None:
    make_worker(threads=100)
    queue = make_queue(num_slots=7)
    running = make_jobs(queue, 7, state=State.RUNNING)

    one = cause(make_job(queue), Code.QUEUE_FULL)

    assert "All 7 slots of its queue are taken" in one.sentence
    assert len(one.jobs) == 5
    assert set(one.jobs) < set(running)
    assert all(f"#{job_id}" in one.sentence for job_id in one.jobs)


def test_queue_is_not_full_with_one_free_slot() -> None:
    make_worker(threads=100)
    queue = make_queue(num_slots=2)
    make_job(queue, state=State.RUNNING)

    assert codes(make_job(queue)) == []


def test_rate_of_the_queue_is_spent() -> None:
    make_worker()
    queue = make_queue(max_per_second=0.001, burst=1)
    QueueRate.objects.create(queue=queue, debt=1.0, as_of=timezone.now())

    told = cause(make_job(queue), Code.RATE_SPENT).sentence

    assert told.startswith("Its queue may start 0.001 jobs in a second: the next one in 16 min")


def test_jobs_before_it_are_those_of_lower_numbers_and_those_that_are_older() -> None:
    make_worker()
    queue = make_queue()
    make_jobs(queue, 2)
    make_jobs(queue, 1, priority=120)
    make_jobs(make_queue(), 5)
    job = make_job(queue)
    make_jobs(queue, 4)
    make_jobs(queue, 4, priority=340)

    assert cause(job, Code.JOBS_BEFORE).sentence == "3 jobs of its queue are before it."


def test_start_is_estimated_from_the_starts_of_the_last_minutes() -> None:
    make_worker()
    queue = make_queue()
    make_jobs(queue, 29)
    job = make_job(queue)
    add_figures("default", {(queue.pk, "app.task", ""): Counts(started=100)})
    minutes = timezone.now() - timedelta(minutes=11)
    make_figure(queue, at=minutes.replace(second=0, microsecond=0), started=5000)

    told = cause(job, Code.JOBS_BEFORE).sentence

    assert told == (
        "29 jobs of its queue are before it. "
        "Estimated start: in about 3 min, at the rate of the last 10 minutes."
    )
    TenantQueue.objects.filter(pk=queue.pk).update(paused=True)
    assert "Estimated" not in cause(job, Code.JOBS_BEFORE).sentence


def test_jobs_before_it_are_counted_by_priority_inside_one_lane() -> None:
    make_worker()
    queue = make_queue()
    make_jobs(queue, 3, lane=0, priority=120)
    job = make_job(queue, lane=0)
    make_jobs(queue, 2, lane=0, priority=120)

    assert cause(job, Code.JOBS_BEFORE).sentence == "5 jobs of its queue are before it."


def test_jobs_before_it_are_counted_up_to_a_limit() -> None:
    make_worker()
    queue = make_queue()
    make_jobs(queue, 1500)

    told = cause(make_job(queue), Code.JOBS_BEFORE).sentence

    assert told == "At least 1000 jobs of its queue are before it."


def test_queue_is_missing() -> None:
    make_worker()
    job = make_job()
    TenantQueue.objects.filter(pk=job.queue_id).delete()

    assert codes(job) == ["queue_missing"]


# its time


def test_scheduled_for_a_time() -> None:
    make_worker()
    job = make_job(state=State.SCHEDULED, run_at=timezone.now() + timedelta(hours=3, seconds=30))

    assert "It is scheduled for " in cause(job, Code.SCHEDULED).sentence
    assert ", in 3 h 0 min" in cause(job, Code.SCHEDULED).sentence
    assert answer(job).sentence == "It waits for its time."


def test_backoff_after_a_failed_attempt() -> None:
    make_worker()
    job = make_job(
        state=State.SCHEDULED,
        run_at=timezone.now() + HOUR,
        attempt=1,
        errors=[{"class": "builtins.ValueError", "message": "no <b>rows</b>\nat all"}],
    )

    told = cause(job, Code.BACKOFF).sentence

    assert "It waits for its next attempt (2 of 5) until " in told
    assert told.endswith("Last error: ValueError: no <b>rows</b>")
    assert codes(job) == ["backoff"]


def test_promotion_is_late_when_a_due_job_was_not_made_ready() -> None:
    make_worker()

    late = make_job(state=State.SCHEDULED, run_at=timezone.now() - timedelta(minutes=2))
    due = make_job(state=State.SCHEDULED, run_at=timezone.now())

    assert codes(late) == ["promotion_late"]
    assert codes(due) == []


def test_task_is_unknown_to_workers_that_claimed_it() -> None:
    make_worker()
    unknown = [{"class": UNKNOWN_CLASS, "message": "no such task", "attempt": 1}]
    job = make_job(
        task="tests.gone", state=State.SCHEDULED, run_at=timezone.now() + HOUR, errors=unknown
    )

    assert codes(job) == ["unknown_task"]
    assert "do not have the task “tests.gone”" in answer(job).causes[0].sentence


# sessions


IN_SESSION = {"held_by": "session", "session_key": "acme/ledger"}


def test_session_is_halted_by_a_job() -> None:
    make_worker()
    session = make_session(halted_at=timezone.now(), halted_by=41)

    one = cause(held(**IN_SESSION), Code.SESSION_HALTED)

    assert "because job #41 failed or was cancelled" in one.sentence
    assert one.jobs == [41]
    assert one.target is not None
    assert (one.target.kind, one.target.id) == ("session", session.pk)


def test_session_is_paused() -> None:
    make_worker()
    make_session(paused=True)

    assert codes(held(**IN_SESSION)) == ["session_paused"]


def test_session_is_busy_with_a_job_that_runs() -> None:
    make_worker()
    first = make_job(state=State.RUNNING, session_key="acme/ledger")

    one = cause(held(**IN_SESSION), Code.SESSION_BUSY)

    assert f"behind job #{first.pk} (running)" in one.sentence
    assert one.jobs == [first.pk]


def test_session_is_busy_with_a_job_that_waits_for_another_attempt() -> None:
    make_worker()
    first = make_job(state=State.SCHEDULED, session_key="acme/ledger", run_at=timezone.now() + HOUR)

    assert f"#{first.pk} (waits until " in cause(held(**IN_SESSION), Code.SESSION_BUSY).sentence


def test_session_is_busy_with_a_monitor() -> None:
    make_worker()
    monitor = make_monitor()
    values = {"session_key": "acme/ledger", "held_by": "details", "monitor_id": monitor.pk}
    held(**values)

    told = cause(held(**IN_SESSION), Code.SESSION_BUSY).sentence

    assert f"(waits for the details of monitor #{monitor.pk})" in told


def test_session_is_busy_with_a_head_that_waits_for_its_time() -> None:
    make_worker()
    make_session()
    head = held(**IN_SESSION, priority=120, run_at=timezone.now() + HOUR)

    assert f"behind job #{head.pk} (until " in cause(held(**IN_SESSION), Code.SESSION_BUSY).sentence
    assert codes(head) == ["scheduled", "not_released"]


def test_session_has_not_released_its_head_yet() -> None:
    make_worker()
    make_session()
    head = held(**IN_SESSION)

    assert codes(head) == ["not_released"]
    assert codes(held(**IN_SESSION)) == ["session_busy"]


# users


BEFORE_CAP = {"held_by": "limit_user", "limit_user": "acme/ada"}


def test_user_has_reached_the_cap() -> None:
    make_worker()
    cap = make_cap(num_slots=1)
    running = make_job(state=State.RUNNING, limit_user="acme/ada")

    one = cause(held(**BEFORE_CAP), Code.USER_FULL)

    assert f"1 job may run at once (now #{running.pk})" in one.sentence
    assert one.target is not None
    assert (one.target.kind, one.target.id) == ("userlimit", cap.pk)


def test_user_has_reached_the_default_cap_without_a_row() -> None:
    make_worker()
    make_jobs(make_queue(), 2, state=State.RUNNING, limit_user="acme/ada")

    assert "2 jobs may run at once" in cause(held(**BEFORE_CAP), Code.USER_FULL).sentence


def test_user_has_reached_the_cap_of_all_users_of_the_tenant() -> None:
    make_worker()
    of_all = make_cap("", num_slots=1)
    make_job(state=State.RUNNING, limit_user="acme/ada")

    one = cause(held(**BEFORE_CAP), Code.USER_FULL)

    assert one.target is not None
    assert one.target.id == of_all.pk


@pytest.mark.parametrize("user", ["ada", ""])
def test_cap_of_the_user_or_of_all_is_paused(user: str) -> None:
    make_worker()
    make_cap(user, paused=True)

    assert codes(held(**BEFORE_CAP)) == ["user_paused"]


def test_user_may_run_no_job() -> None:
    make_worker()
    make_cap(num_slots=0)

    assert codes(held(**BEFORE_CAP)) == ["user_without_slots"]


# exclusive keys


def test_exclusive_key_is_held_by_a_job() -> None:
    make_worker()
    first = make_job(state=State.RUNNING, exclusive_key="acme/import")

    one = cause(held(held_by="exclusive", exclusive_key="acme/import"), Code.EXCLUSIVE_HELD)

    assert f"Job #{first.pk} has the same exclusive key" in one.sentence
    assert one.jobs == [first.pk]


def test_unique_key_is_no_cause() -> None:
    make_worker()

    assert codes(make_job(unique_key="acme/x", unique_mode="until_executed")) == []


# tasks


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"paused": True}, "task_paused"),
        ({"num_slots": 0}, "task_without_slots"),
        ({"num_slots": 1}, "task_full"),
    ],
)
@pytest.mark.parametrize("make", [make_job, held])
def test_task_holds_ready_and_held_jobs(
    columns: dict[str, Any], code: str, make: Callable[..., Job]
) -> None:
    make_worker()
    TaskControl.objects.create(task="tests.capped", **columns)
    make_job(state=State.RUNNING, task="tests.capped", task_at=timezone.now())
    gate = {"held_by": "task"} if make is held else {}

    assert codes(make(task="tests.capped", **gate)) == [code]


@pytest.mark.parametrize("make", [make_job, held])
def test_rate_of_the_task_is_spent(make: Callable[..., Job]) -> None:
    make_worker()
    control = TaskControl.objects.create(task="tests.slow", max_per_second=0.001, num_slots=5)
    TaskRate.objects.create(control=control, debt=1.0, as_of=timezone.now())
    gate = {"held_by": "task"} if make is held else {}
    job = make(task="tests.slow", **gate)

    assert codes(job) == ["task_rate_spent"]

    one = cause(job, Code.TASK_RATE_SPENT)
    told = "Its task may start 0.001 jobs in a second, of all tenants: the next one in 1"
    assert one.sentence.startswith(told)
    assert one.target == Target("task", control.pk, "tests.slow")


def test_rate_of_the_task_with_a_start_left_holds_its_line_alone() -> None:
    make_worker()
    TaskControl.objects.create(task="tests.slow", max_per_second=0.001)

    assert codes(make_job(task="tests.slow")) == []
    one = cause(held(task="tests.slow", held_by="task"), Code.TASK_RATE_SPENT)
    assert one.sentence == "Its task may start 0.001 jobs in a second, of all tenants."


def test_task_with_a_free_slot_is_no_cause() -> None:
    make_worker()
    TaskControl.objects.create(task="tests.capped", num_slots=1)

    assert codes(make_job(task="tests.capped")) == []


# monitors


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"paused": True}, "monitor_paused"),
        ({"parallel": 0}, "monitor_without_slots"),
        ({"cancelled_at": timezone.now()}, "monitor_cancelled"),
    ],
)
def test_monitor_feeds_nothing(columns: dict[str, Any], code: str) -> None:
    make_worker()

    assert codes(in_line(make_monitor(**columns))) == [code]


def test_monitor_has_stopped_after_failures() -> None:
    make_worker()
    monitor = make_monitor(stop_after_failures=2)
    job = in_line(monitor)
    detail(monitor, state=State.ERROR)
    assert codes(job) == ["not_released"]
    detail(monitor, state=State.ERROR)

    assert codes(job) == ["monitor_stopped"]


def test_monitor_has_as_many_in_flight_as_parallel_allows() -> None:
    make_worker()
    monitor = make_monitor(parallel=2)
    detail(monitor, state=State.RUNNING)
    detail(monitor, state=State.SCHEDULED)

    assert "2 details in flight" in cause(in_line(monitor), Code.MONITOR_FULL).sentence


def test_monitor_waits_for_its_interval() -> None:
    make_worker()
    monitor = make_monitor(interval_seconds=600)
    MonitorPace.objects.create(monitor=monitor, fed_at=timezone.now())

    told = cause(in_line(monitor), Code.MONITOR_INTERVAL).sentence

    assert told.startswith("Its monitor starts details every 10 min 0 s: the next time in ")


def test_queue_with_fewer_slots_than_parallel_bounds_the_monitor() -> None:
    make_worker(threads=100)
    queue = make_queue(num_slots=2)
    monitor = make_monitor(parallel=40)
    make_jobs(queue, 2, state=State.RUNNING, monitor_id=monitor.pk)
    ready = detail(monitor, queue)
    make_jobs(queue, 37, monitor_id=monitor.pk)
    job = in_line(monitor, queue)

    one = cause(job, Code.QUEUE_BOUNDS_MONITOR)

    assert "Its queue has 2 slots, so at most 2 details of its monitor run" in one.sentence
    assert one.target is not None
    assert (one.target.kind, one.target.id) == ("queue", queue.pk)
    assert codes(job) == ["monitor_full", "queue_bounds_monitor"]
    assert codes(ready) == ["queue_full"]


def test_monitor_waits_for_its_session() -> None:
    make_worker()
    first = make_job(state=State.RUNNING, session_key="acme/ledger")
    anchor = held(**IN_SESSION)
    monitor = make_monitor(anchor_id=anchor.pk, session_key="acme/ledger")

    job = in_line(monitor)

    assert codes(job) == ["monitor_waits", "session_busy"]
    assert answer(job).causes[1].jobs == [first.pk]


def test_callback_waits_for_the_last_detail() -> None:
    make_worker()
    monitor = make_monitor(paused=True, keep_open=True)
    anchor = held(held_by="details", monitor_id=monitor.pk)

    assert codes(anchor) == ["monitor_paused", "monitor_open", "details_left"]


# several at once


def test_all_causes_are_listed_worst_first() -> None:
    TaskControl.objects.create(task="tests.held", paused=True)
    make_session(paused=True)
    make_cap(paused=True)
    first = make_job(state=State.RUNNING, session_key="acme/ledger")
    job = make_job(
        make_queue(paused=True, num_slots=0),
        state=State.HELD,
        task="tests.held",
        limit_user="acme/ada",
        run_at=timezone.now() + HOUR,
        **IN_SESSION,
    )

    assert codes(job) == [
        *("no_worker", "queue_paused", "queue_without_slots", "session_paused", "user_paused"),
        *("task_paused", "session_busy", "scheduled"),
    ]
    assert first.pk in answer(job).causes[-2].jobs


def test_a_scheduled_job_names_what_will_hold_it_and_not_what_is_busy_now() -> None:
    make_worker(threads=1)
    queue = make_queue(num_slots=1, paused=True)
    make_job(queue, state=State.RUNNING, worker_id=1)
    job = make_job(queue, state=State.SCHEDULED, run_at=timezone.now() + HOUR)

    assert codes(job) == ["queue_paused", "scheduled"]


def test_every_code_has_a_rank_and_one_cause_a_row() -> None:
    causes = [Cause(code, code.value) for code in reversed(Code)]

    assert [one.code for one in sorted_causes(causes * 2)] == list(Code)


# jobs that run, or have ended


def test_running_job_says_since_when_and_where() -> None:
    worker = make_worker(name="web-7:12")
    job = make_job(
        state=State.RUNNING,
        worker_id=worker.pk,
        started_at=timezone.now() - timedelta(minutes=9, seconds=1),
    )

    found = answer(job)

    assert found.causes == []
    assert found.sentence.startswith("It has been running for 9 min ")
    assert "on worker web-7:12, attempt 1 of 5" in found.sentence


def test_claimed_job_is_about_to_start() -> None:
    worker = make_worker(name="web-7:12")

    told = answer(make_job(state=State.QUEUED, worker_id=worker.pk)).sentence

    assert told.startswith("Worker web-7:12 claimed it ")


def test_worker_of_a_running_job_is_silent() -> None:
    worker = make_worker(heartbeat_at=timezone.now() - timedelta(minutes=4))

    one = cause(make_job(state=State.RUNNING, worker_id=worker.pk), Code.WORKER_SILENT)

    assert one.sentence.startswith("Its worker has sent no heartbeat for 4 min")
    assert one.target is not None
    assert (one.target.kind, one.target.id) == ("worker", worker.pk)


def test_worker_of_a_running_job_is_gone() -> None:
    assert codes(make_job(state=State.RUNNING)) == ["worker_gone"]


def make_sent(seconds: float) -> tuple[Job, Worker]:
    """Return a job that a dispatcher has sent, and the dispatcher."""
    dispatcher = make_worker(name="web-7:12", role=Role.DISPATCHER, executor="celery", threads=0)
    queue = make_queue("acme", "celery", executor="celery")
    sent_at = timezone.now() - timedelta(seconds=seconds)
    job = make_job(queue, state=State.QUEUED, worker_id=dispatcher.pk, queued_at=sent_at)
    return job, dispatcher


def test_sent_job_says_that_no_process_has_taken_it_over() -> None:
    job, _dispatcher = make_sent(1)

    found = answer(job)

    assert found.causes == []
    assert found.sentence.startswith("Dispatcher web-7:12 sent it to the executor celery 1")
    assert found.sentence.endswith("ago. No process has accepted it yet.")


def test_sent_job_is_not_taken_over_for_long() -> None:
    job, dispatcher = make_sent(60)

    one = cause(job, Code.NOT_TAKEN_OVER)

    assert one.sentence.startswith("It was sent to the executor celery 1 min")
    assert one.sentence.endswith(" ago, and no process has accepted it.")
    assert one.target == Target("worker", dispatcher.pk, dispatcher.name)


def test_job_in_a_process_of_an_executor_says_so() -> None:
    worker = make_worker(name="w0@web 9", role=Role.RUNNER, executor="celery")
    started_at = timezone.now() - timedelta(minutes=2)

    job = make_job(state=State.RUNNING, worker_id=worker.pk, started_at=started_at)

    assert "in the process w0@web 9 of the executor celery, attempt 1" in answer(job).sentence


def make_waiting() -> Job:
    return make_job(make_queue("acme", "celery", executor="celery"))


def test_dispatcher_cannot_send() -> None:
    values = {"role": Role.DISPATCHER, "executor": "celery", "last_error": "no broker"}
    one = make_worker(**values, last_error_at=timezone.now())
    job = make_waiting()

    found = cause(job, Code.NOT_SENT)

    assert found.sentence == "Its dispatcher cannot send jobs: no broker"
    assert found.target == Target("worker", one.pk, one.name)
    make_worker(role=Role.DISPATCHER, executor="celery")  # this one can
    assert codes(job) == []


def test_dispatcher_that_can_send_again_is_no_cause() -> None:
    minute_ago = timezone.now() - timedelta(minutes=1)
    make_worker(
        role=Role.DISPATCHER, executor="celery", last_error="no broker", last_error_at=minute_ago
    )

    assert codes(make_waiting()) == []


@pytest.mark.parametrize(
    "columns", [{}, {"role": Role.DISPATCHER, "executor": "other"}], ids=["worker", "other"]
)
def test_no_dispatcher_of_its_executor(columns: dict[str, Any]) -> None:
    make_worker(**columns)

    one = cause(make_waiting(), Code.NO_WORKER_TAKES)

    assert one.sentence == "No dispatcher of the executor “celery” takes its queue."
    assert one.remedy == "Start one: “manage.py runworker --dispatch celery”."


def test_cancellation_of_a_running_job_was_requested() -> None:
    worker = make_worker()
    job = make_job(state=State.RUNNING, worker_id=worker.pk, cancel_requested_at=timezone.now())

    assert codes(job) == ["cancel_requested"]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (State.SUCCESS, "It has ended with success, at "),
        (State.CANCELLED, "It was cancelled, at "),
        (State.ERROR, "It has ended in error after 1 of 5 attempts, at "),
    ],
)
def test_finished_job_says_its_outcome(state: State, told: str) -> None:
    errors = [{"class": "builtins.OSError", "message": "disk full"}]
    found = answer(make_job(state=state, errors=errors))

    assert found.sentence.startswith(told)
    assert ("Last error: OSError: disk full" in found.sentence) == (state == State.ERROR)
    assert found.causes == []


# who


def test_operator_who_paused_the_queue_is_named() -> None:
    queue = make_queue()
    with acting_as("grace", "admin"):
        control.pause([queue.pk])
    with acting_as("ada", "admin"):
        control.tune_queue(queue.pk, num_slots=5)

    by = cause(make_job(queue), Code.QUEUE_PAUSED).done_by

    assert by is not None
    assert by.text == "grace (admin)"


def test_source_is_named_when_the_actor_is_not_known() -> None:
    queue = make_queue()
    control.pause([queue.pk])

    by = cause(make_job(queue), Code.QUEUE_PAUSED).done_by

    assert by is not None
    assert by.text == "code"


def test_operator_is_left_out_when_raw_sql_has_paused_it_since() -> None:
    queue = make_queue()
    control.pause([queue.pk])
    control.resume([queue.pk])
    TenantQueue.objects.filter(pk=queue.pk).update(paused=True)

    assert cause(make_job(queue), Code.QUEUE_PAUSED).done_by is None


def test_operator_who_set_zero_slots_of_a_cap_is_named() -> None:
    cap = make_cap(num_slots=3)
    with acting_as("grace", "command"):
        session_control.tune_session(cap.pk, num_slots=0)

    by = cause(held(**BEFORE_CAP), Code.USER_WITHOUT_SLOTS).done_by

    assert by is not None
    assert by.text == "grace (command)"


def test_operator_who_cancelled_the_monitor_is_named() -> None:
    monitor = make_monitor()
    job = in_line(monitor)
    with acting_as("grace", "admin"):
        monitor_control.mark_cancelled(monitor.pk, "default")

    by = cause(job, Code.MONITOR_CANCELLED).done_by

    assert by is not None
    assert by.name == "grace"


# cost


def test_an_answer_takes_a_bounded_number_of_statements() -> None:
    for _ in range(30):
        make_worker(threads=1)
    queue = make_queue(num_slots=20, max_per_second=5.0)
    make_jobs(queue, 20, state=State.RUNNING)
    make_jobs(queue, 200)
    job = make_job(queue)

    with CaptureQueriesContext(connection) as captured:
        explain("default", job)

    assert len(captured) <= 14
