"""What is asked of worker processes, and what is told to them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_tenantqueue.execution.outcome import UNKNOWN_CLASS
from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    QueueRate,
    Session,
    TaskControl,
    TenantQueue,
    Worker,
)
from django_tenantqueue.operations import worker_control
from django_tenantqueue.queries import fleet as queries
from django_tenantqueue.states import State
from django_tenantqueue.status import fleet_report, queue_loads, workers
from django_tenantqueue.status.display_limits import NAMED, VISITED
from django_tenantqueue.status.fleet_report import read_need, read_report
from django_tenantqueue.status.workers import WorkerState
from tests.factories import (
    make_blocked_queues,
    make_duty,
    make_job,
    make_jobs,
    make_queue,
    make_worker,
)

pytestmark = pytest.mark.django_db


def problems() -> str:
    """Return what is wrong, as one text."""
    return "\n".join(problem.text for problem in read_report("default", jobs=5).problems)


# orders


def test_stop_sets_one_column_of_those_that_were_not_told_yet() -> None:
    new, told, other = make_worker(), make_worker(stopping=True), make_worker()

    changed = worker_control.stop([new.pk, told.pk])

    assert changed == [new.pk]
    assert set(Worker.objects.filter(stopping=True)) == {new, told}
    assert not Worker.objects.filter(draining=True).exists()
    assert not Worker.objects.get(pk=other.pk).stopping


def test_drain_leaves_stopping_alone() -> None:
    worker = make_worker()

    assert worker_control.drain([worker.pk]) == [worker.pk]
    assert worker_control.drain([worker.pk]) == []
    assert Worker.objects.filter(draining=True, stopping=False).exists()


def test_worker_that_drains_can_be_stopped() -> None:
    worker = make_worker(draining=True)

    assert worker_control.stop([worker.pk]) == [worker.pk]


def test_stop_of_workers_that_have_gone_changes_nothing() -> None:
    assert worker_control.stop([12345]) == []


# states


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({}, WorkerState.WORKING),
        ({"sleeping_until": timezone.now() + timedelta(days=1)}, WorkerState.IDLE),
        ({"sleeping_until": timezone.now() - timedelta(days=1)}, WorkerState.WORKING),
        (
            {"sleeping_until": timezone.now() + timedelta(days=1), "jobs_running": 2},
            WorkerState.WORKING,
        ),
        (
            {"sleeping_until": timezone.now() + timedelta(days=1), "jobs_per_second": 42},
            WorkerState.WORKING,
        ),
        ({"draining": True}, WorkerState.DRAINING),
        ({"draining": True, "stopping": True}, WorkerState.STOPPING),
        ({"heartbeat_at": timezone.now() - timedelta(days=1)}, WorkerState.SILENT),
        (
            {"heartbeat_at": timezone.now() - timedelta(days=1), "stopping": True},
            WorkerState.SILENT,
        ),
    ],
)
def test_state_is_told_by_the_row(columns: dict[str, Any], state: WorkerState) -> None:
    assert workers.state_of(make_worker(**columns), timezone.now()) == state


# what runs


def test_running_jobs_are_listed_the_longest_first() -> None:
    queue = make_queue("acme", "reports")
    now = timezone.now()
    ages = {minutes: timedelta(minutes=minutes) for minutes in (2, 9, 5)}
    jobs = {
        minutes: make_job(
            queue, state=State.RUNNING, worker_id=1, started_at=now - age, queued_at=now - age
        )
        for minutes, age in ages.items()
    }

    found = workers.list_running("default")

    assert [claim.id for claim in found] == [jobs[9].pk, jobs[5].pk, jobs[2].pk]
    assert found[0].age_seconds == pytest.approx(540, abs=60)


def test_running_job_is_told_in_full() -> None:
    job = make_job(
        make_queue("acme", "reports"), state=State.QUEUED, task="send", worker_id=7, attempt=2
    )

    (found,) = workers.list_running("default")

    assert (found.id, found.worker_id, found.task) == (job.pk, 7, "send")
    assert (found.tenant, found.queue, found.state) == ("acme", "reports", "queued")
    assert (found.attempt, found.max_attempts, found.of_worker) == (2, 5, 1)


def test_jobs_of_one_worker_are_listed_when_it_is_named() -> None:
    queue = make_queue()
    (mine,) = make_jobs(queue, 1, state=State.RUNNING, worker_id=1)
    make_jobs(queue, 1, state=State.RUNNING, worker_id=2)

    assert [claim.id for claim in workers.list_running("default", 1)] == [mine]


def test_so_many_jobs_of_each_worker_are_listed() -> None:
    queue = make_queue()
    for worker_id, count in ((1, 5), (2, 1), (3, 3)):
        make_jobs(queue, count, state=State.RUNNING, worker_id=worker_id)

    found = workers.list_running("default", most=2)

    assert sorted((claim.worker_id, claim.of_worker) for claim in found) == [
        (1, 5),
        (1, 5),
        (2, 1),
        (3, 3),
        (3, 3),
    ]


def test_jobs_that_wait_or_have_ended_are_not_listed() -> None:
    queue = make_queue()
    for state in (State.READY, State.SCHEDULED, State.SUCCESS, State.ERROR):
        make_jobs(queue, 1, state=state)

    assert workers.list_running("default") == []


def test_job_of_a_queue_that_was_deleted_is_listed() -> None:
    (job_id,) = make_jobs(987_654, 1, state=State.RUNNING)

    (found,) = workers.list_running("default")

    assert (found.id, found.tenant, found.queue) == (job_id, "", "")


# maintenance


def test_duties_are_told_with_their_ages() -> None:
    now = timezone.now()
    make_duty("rescue")
    make_duty("promote", ran_at=now - timedelta(hours=1), acted_at=now - timedelta(hours=2))

    promote, rescue = workers.list_duties("default")

    assert (promote.name, rescue.name) == ("promote", "rescue")
    assert promote.ran_seconds_ago == pytest.approx(3600, abs=60)
    assert promote.acted_seconds_ago == pytest.approx(7200, abs=60)
    assert rescue.acted_seconds_ago is None


def test_failed_duty_is_a_problem() -> None:
    make_worker()
    make_duty("rescue", error="LockNotAvailable")

    assert re.fullmatch(r"maintenance task rescue failed \d+ s ago", problems())


def test_failed_duty_of_a_removed_app_is_no_problem_for_ever() -> None:
    make_worker()
    make_duty("promote")
    make_duty("of_a_removed_app", error="boom", ran_at=timezone.now() - timedelta(days=2))

    assert not problems()


def test_maintenance_that_none_has_done_for_a_minute_is_a_problem() -> None:
    make_worker()
    for minutes in (2, 3):
        ran_at = timezone.now() - timedelta(minutes=minutes)
        make_duty(f"duty-{minutes}", ran_at=ran_at)

    assert re.match(r"no worker has done the maintenance for 2 min: start one", problems())
    make_duty("promote", ran_at=timezone.now() - timedelta(seconds=20))
    assert not problems()


def test_late_maintenance_is_no_problem_of_its_own_when_no_worker_runs() -> None:
    make_duty("promote", ran_at=timezone.now() - timedelta(minutes=9))

    assert "no worker runs" in problems()
    assert "maintenance" not in problems()


# counts


def test_jobs_are_counted_by_what_they_wait_for() -> None:
    queue = make_queue()
    for state, count in (
        (State.READY, 4),
        (State.SCHEDULED, 3),
        (State.QUEUED, 1),
        (State.RUNNING, 1),
        (State.SUCCESS, 5),
    ):
        make_jobs(queue, count, state=state)

    counts = queries.count_jobs("default", most=100)

    assert (counts.ready, counts.scheduled, counts.running) == (4, 3, 2)


def test_counting_stops_at_the_limit() -> None:
    queue = make_queue()
    for state in (State.READY, State.SCHEDULED, State.RUNNING):
        make_jobs(queue, 4, state=state)

    counts = queries.count_jobs("default", most=3)

    assert (counts.ready, counts.scheduled, counts.running) == (3, 3, 3)


def test_held_jobs_are_counted_by_what_holds_them() -> None:
    queue = make_queue()
    keys = ("monitor_id", "session_key", "limit_user", "exclusive_key", "task")
    gates = ("monitor", "session", "limit_user", "exclusive", "task")
    for count, (gate, key) in enumerate(zip(gates, keys, strict=True), 1):
        make_jobs(queue, count, state=State.HELD, held_by=gate, **{key: 7 if count == 1 else "a/7"})

    held = queries.count_jobs("default", most=4).held

    assert (held.monitor, held.session, held.limit_user, held.exclusive, held.task) == (
        1,
        2,
        3,
        4,
        4,
    )


# what lacks a worker


def need() -> tuple[int, float | None]:
    found = read_need("default")
    return found.startable, found.oldest_wait_seconds


def waiting_since(minutes: float, **columns: Any) -> dict[str, Any]:
    since = timezone.now() - timedelta(minutes=minutes)
    return {"created_at": since, "run_at": since, **columns}


def test_jobs_that_could_start_are_counted_up_to_the_free_slots() -> None:
    queue = make_queue(num_slots=3)
    make_jobs(queue, 1, state=State.RUNNING)
    make_jobs(queue, 5, **waiting_since(2))
    make_jobs(make_queue(num_slots=3), 1, **waiting_since(1))

    startable, waited = need()

    assert startable == 2 + 1
    assert waited == pytest.approx(120, abs=20)


def test_free_slots_count_once_when_a_queue_has_jobs_in_several_lanes() -> None:
    queue = make_queue(num_slots=3)
    for priority in (100, 200, 300):
        make_jobs(queue, 2, priority=priority, lane=priority)

    assert need()[0] == 3


def test_jobs_beyond_the_free_slots_take_no_place_of_others_that_are_counted() -> None:
    for _ in range(4):
        queue = make_queue(num_slots=2)
        for priority in (100, 200, 300):
            make_jobs(queue, 2, priority=priority)

    found = queries.list_busy_queues("default", **{**BOUNDS, "startable": 8})

    assert [queue.jobs for queue in found] == [2] * 4


@pytest.mark.parametrize(
    "columns",
    [{"paused": True}, {"num_slots": 0}, {"num_slots": 1}, {"max_per_second": 0.001}],
)
def test_jobs_of_queues_that_start_nothing_lack_no_worker(columns: dict[str, Any]) -> None:
    queue = make_queue(**columns)
    make_jobs(queue, 1, state=State.RUNNING)
    make_jobs(queue, 2)
    if queue.max_per_second:
        QueueRate.objects.create(queue=queue, debt=1.0, as_of=timezone.now())

    assert need() == (0, None)


def test_rate_allows_so_many_starts() -> None:
    queue = make_queue(num_slots=10, max_per_second=4, burst=4)
    make_jobs(queue, 9)
    QueueRate.objects.create(queue=queue, debt=100.0, as_of=timezone.now() - timedelta(days=1))

    assert need()[0] == 4


def test_wait_of_gated_jobs_is_not_known() -> None:
    queue = make_queue(num_slots=10)
    make_jobs(queue, 1, **waiting_since(60, session_key="acme/7"))

    assert need() == (1, None)

    make_jobs(queue, 1, **waiting_since(2))
    startable, waited = need()
    assert startable == 2
    assert waited == pytest.approx(120, abs=20)


def ended(queue: TenantQueue, *runs: tuple[int, int]) -> None:
    """Insert jobs that took and freed a slot so many minutes ago."""
    now = timezone.now()
    for taken, freed in runs:
        times = {"queued_at": now - timedelta(minutes=taken)}
        times["finished_at"] = now - timedelta(minutes=freed)
        make_jobs(queue, 1, state=State.SUCCESS, **times)


@pytest.mark.parametrize(
    ("num_slots", "runs", "minutes"),
    [
        (1, [(40, 30), (30, 5)], 5),  # the last one has freed the only slot
        (3, [(40, 30), (30, 5)], 60),  # there was a free slot all the time
        (2, [(50, 20), (30, 5), (4, 3)], 20),  # full until one of two ended
        (2, [(30, 20), (40, 5), (19, 4)], 5),  # they do not end in the order of their starts
        (1, [], 60),
    ],
)
def test_wait_for_a_slot_is_no_lack_of_workers(
    num_slots: int, runs: list[tuple[int, int]], minutes: int
) -> None:
    queue = make_queue(num_slots=num_slots)
    make_jobs(queue, 3, **waiting_since(60))
    ended(queue, *runs)

    assert need()[1] == pytest.approx(60 * minutes, abs=20)
    report = read_report("default", jobs=0)
    assert report.need.oldest_wait_seconds == pytest.approx(60 * minutes, abs=20)


def test_running_jobs_count_when_a_queue_was_full_last() -> None:
    queue = make_queue(num_slots=2)
    make_jobs(queue, 3, **waiting_since(60))
    make_jobs(queue, 1, state=State.RUNNING, queued_at=timezone.now() - timedelta(minutes=30))
    ended(queue, (40, 10))

    assert need() == (1, pytest.approx(600, abs=20))


def test_wait_in_a_queue_with_a_rate_is_not_known() -> None:
    queue = make_queue(num_slots=10, max_per_second=4, burst=4)
    make_jobs(queue, 9, **waiting_since(60))

    assert need() == (4, None)


def test_ended_jobs_are_read_for_few_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_report, "LISTED", 2)
    for minutes in (50, 60, 40):
        queue = make_queue(num_slots=1)
        make_jobs(queue, 1, **waiting_since(minutes))
        if minutes > 40:
            ended(queue, (70, minutes - 45))

    assert need() == (3, pytest.approx(15 * 60, abs=20))


def test_workers_that_leave_are_no_room() -> None:
    queue = make_queue()
    for columns in ({}, {"draining": True}, {"heartbeat_at": timezone.now() - timedelta(days=1)}):
        worker = make_worker(threads=8, async_slots=10, **columns)
        make_jobs(queue, 3, state=State.RUNNING, worker_id=worker.pk)

    found = read_need("default")

    assert (found.running, found.threads, found.async_slots) == (3, 8, 10)
    assert read_report("default", jobs=1).need == found


def test_running_jobs_are_known_before_the_next_heartbeat() -> None:
    worker = make_worker(threads=2, async_slots=10, jobs_running=0)
    make_jobs(make_queue(), 2, state=State.RUNNING, worker_id=worker.pk)
    make_jobs(make_queue(), 3, state=State.QUEUED, worker_id=worker.pk, is_async=True)

    assert read_need("default").running == 2 + 3

    make_jobs(make_queue(), 4, state=State.QUEUED, worker_id=worker.pk)  # claimed ahead
    assert read_need("default").running == 2 + 3


def test_jobs_that_could_start_are_seen_behind_many_that_are_blocked() -> None:
    make_blocked_queues(VISITED + 10, priority=100)
    make_jobs(make_queue(num_slots=None), 7, priority=200)

    assert need()[0] == 7
    assert read_report("default", jobs=1).need.startable == 7


# the report


def test_report_gives_each_worker_its_longest_jobs() -> None:
    first, second = make_worker(name="a"), make_worker(name="b")
    make_jobs(make_queue(), 4, state=State.RUNNING, worker_id=second.pk)

    report = read_report("default", jobs=3)

    assert [worker.id for worker in report.workers] == [first.pk, second.pk]
    assert [(len(worker.jobs), worker.claims) for worker in report.workers] == [(0, 0), (3, 4)]


def test_report_without_jobs_knows_their_number() -> None:
    worker = make_worker()
    make_jobs(make_queue(), 4, state=State.RUNNING, worker_id=worker.pk)

    (found,) = read_report("default", jobs=0).workers

    assert (len(found.jobs), found.claims) == (0, 4)


def test_no_statement_is_sent_for_each_worker(django_assert_max_num_queries: Any) -> None:
    for number in range(10):
        make_jobs(make_queue(), 3, state=State.RUNNING, worker_id=make_worker(pid=number).pk)

    with django_assert_max_num_queries(47):
        report = read_report("default", jobs=5)

    assert len(report.workers) == 10


def test_jobs_of_a_worker_that_is_gone_are_a_problem() -> None:
    worker = make_worker()
    make_jobs(make_queue(), 3, state=State.RUNNING, worker_id=worker.pk + 1)

    report = read_report("default", jobs=2)

    assert len(report.strays) == 2
    assert "3 jobs are held by workers that are gone" in problems()


def test_fleet_that_is_well_has_no_problem() -> None:
    make_worker()
    make_job()

    assert problems() == ""


def test_missing_worker_is_a_problem() -> None:
    make_jobs(make_queue(), 2)

    assert problems() == "no worker runs: start one with manage.py runworker; ready jobs: 2"


def test_silent_worker_is_a_problem() -> None:
    make_worker()
    make_worker(heartbeat_at=timezone.now() - timedelta(minutes=5))

    assert problems() == "1 of 2 workers have sent no heartbeat for 30 s"


def test_fleet_of_silent_workers_runs_nothing() -> None:
    make_worker(heartbeat_at=timezone.now() - timedelta(minutes=5))

    assert "no worker runs" in problems()


def test_fleet_that_leaves_is_a_problem() -> None:
    make_worker(draining=True)
    make_worker(stopping=True)

    assert problems() == "every worker drains or stops: start one with manage.py runworker"


@pytest.mark.parametrize(
    "filters",
    [
        {"queues": ["default"]},
        {"exclude_queues": ["reports"]},
        {"tenants": ["zeta"]},
        {"draining": True},
        {"stopping": True},
        {"heartbeat_at": timezone.now() - timedelta(minutes=5)},
    ],
)
def test_ready_jobs_that_no_worker_takes_are_a_problem(filters: dict[str, Any]) -> None:
    make_job(make_queue("acme", "reports"))
    make_job(make_queue("zeta"))
    make_worker(queues=["default"])
    make_worker(**filters)

    assert "ready jobs that no worker takes, in acme/reports" in problems()
    assert "zeta/default" not in problems()


@pytest.mark.parametrize(
    "filters",
    [{}, {"queues": ["other", "reports"]}, {"tenants": ["acme"]}, {"exclude_queues": ["default"]}],
)
def test_ready_jobs_that_some_worker_takes_are_no_problem(
    filters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the tasks of other tests declare queues, which no worker takes here
    monkeypatch.setattr(queue_loads, "registered_tasks", dict)
    make_job(make_queue("acme", "reports"))
    make_worker(queues=["default"])
    make_worker(**filters)

    assert problems() == ""


@pytest.mark.parametrize("columns", [{"paused": True}, {"num_slots": 0}])
def test_ready_jobs_of_halted_queues_are_a_problem(columns: dict[str, Any]) -> None:
    make_worker()
    make_job(make_queue("", "reports", **columns))

    assert problems() == (
        "ready jobs in paused queues, or in queues without slots: (no tenant)/reports"
    )


def test_tasks_that_no_worker_knows_are_a_problem() -> None:
    make_worker()
    soon = timezone.now() + timedelta(seconds=15)
    unknown = [{"class": "ValueError"}, {"class": UNKNOWN_CLASS}]
    for name, jobs in (("tests.gone", 2), ("tests.new", 1)):
        for _ in range(jobs):
            make_job(task=name, state=State.SCHEDULED, run_at=soon, errors=unknown)
    make_job(state=State.SCHEDULED, run_at=soon, errors=unknown[::-1])

    assert problems() == (
        "workers claimed 3 jobs that they cannot run: tests.gone, tests.new; start "
        "workers with the code of the tasks"
    )


def make_session(kind: str, key: str, **columns: Any) -> Session:
    gate = f"acme/{key}"
    return Session.objects.create(kind=kind, tenant="acme", key=key, gate_key=gate, **columns)


def test_lines_that_move_no_more_are_a_problem() -> None:
    make_worker()
    now = timezone.now()
    make_session("serial", "halted", halted_at=now)
    make_session("serial", "paused", paused=True)
    make_session("serial", "goes", on_wait="skip")
    make_session("limit_user", "ada", paused=True)
    TaskControl.objects.create(task="tests.paused", paused=True)
    monitors = [make_monitor(paused=True), make_monitor(stop_after_failures=2), make_monitor()]
    for key in ("halted", "paused", "goes"):
        make_job(state=State.HELD, held_by="session", session_key=f"acme/{key}")
    make_job(state=State.HELD, held_by="limit_user", limit_user="acme/ada")
    for name in ("tests.paused", "tests.goes"):
        make_job(state=State.HELD, held_by="task", task=name)
    for monitor in monitors:
        make_job(state=State.HELD, held_by="monitor", monitor_id=monitor.pk)
        make_jobs(make_queue(), 2, state=State.ERROR, monitor_id=monitor.pk)

    assert problems().splitlines() == [
        "held jobs in halted sessions (resume them in the admin): acme/halted",
        f"held jobs of monitors that stopped after failures: acme/work #{monitors[1].pk}",
        "held jobs in paused sessions: acme/paused",
        "held jobs of users whose limits are paused: acme/ada",
        f"held jobs of paused monitors: acme/work #{monitors[0].pk}",
        "held jobs of paused tasks: tests.paused",
    ]


def make_monitor(**columns: Any) -> ConcurrentJobMonitor:
    return ConcurrentJobMonitor.objects.create(
        tenant="acme",
        name="work",
        parallel=2,
        anchor_id=-1 - ConcurrentJobMonitor.objects.count(),
        created_at=timezone.now(),
        **columns,
    )


def test_sessions_without_a_line_are_no_problem() -> None:
    make_worker()
    make_session("serial", "halted", halted_at=timezone.now())

    assert not problems()


def test_look_for_stuck_lines_is_bounded() -> None:
    for number in range(4):
        make_session("serial", f"s{number}", paused=True)
        make_job(state=State.HELD, held_by="session", session_key=f"acme/s{number}")

    assert len(queries.list_stuck_lines("default", most=3)) == 3


def test_look_for_unknown_tasks_is_bounded() -> None:
    soon = timezone.now() + timedelta(seconds=15)
    for number in range(5):
        make_job(task=f"task{number}", state=State.SCHEDULED, run_at=soon, errors=[{"class": "x"}])

    assert len(queries.list_unknown_tasks("default", most=3, error_class="x")) == 3


def test_every_lane_is_looked_at_for_stuck_queues() -> None:
    make_worker(exclude_queues=["slow"])
    for number in range(4):
        make_job(make_queue(f"tenant-{number}"), priority=100 * number)
    make_job(make_queue("zeta", "slow"), priority=150)

    assert "no worker takes, in zeta/slow:" in problems()


BOUNDS = {"listed": 0, "visits": 2000, "active": 100, "startable": 100, "blocked": 100}


def test_look_for_busy_queues_is_bounded() -> None:
    for _ in range(5):
        queue = make_queue()
        make_jobs(queue, 2)
        make_jobs(make_queue(paused=True), 2)
        make_jobs(make_queue(), 1, state=State.RUNNING)

    bounds = {**BOUNDS, "visits": 8, "startable": 5, "blocked": 3}
    found = queries.list_busy_queues("default", **bounds)
    assert len(found) == 8
    assert all(queue.capped for queue in found)
    assert sum(queue.jobs for queue in found if not queue.blocked) == 5
    assert sum(queue.jobs for queue in found if queue.blocked) == 3

    found = queries.list_busy_queues("default", **{**BOUNDS, "listed": 12})
    assert [queue.active for queue in found] == [0] * 10 + [1] * 2
    assert not any(queue.capped for queue in found)


def test_taken_slots_are_known_when_there_are_more_active_jobs_than_are_counted() -> None:
    first, full = make_queue(), make_queue(num_slots=2)
    make_jobs(first, 3, state=State.RUNNING)
    make_jobs(full, 2, state=State.RUNNING)
    make_jobs(full, 1)

    (found,) = queries.list_busy_queues("default", **{**BOUNDS, "active": 1})

    assert (found.id, found.blocked, found.jobs, found.capped) == (full.pk, "slots", 1, True)


def test_some_of_many_stuck_queues_are_named() -> None:
    make_worker(queues=["none"])
    for number in range(NAMED + 2):
        make_job(make_queue(f"tenant-{number}"))

    assert "tenant-4/default and 2 more: start a" in problems()


def test_jobs_that_a_worker_holds_count_more_than_its_last_heartbeat() -> None:
    worker = make_worker(sleeping_until=timezone.now() + timedelta(days=1), jobs_running=2)
    assert workers.state_of(worker, timezone.now(), 0) == WorkerState.IDLE
    assert workers.state_of(worker, timezone.now(), 1) == WorkerState.WORKING


def test_report_tells_that_a_sleeping_worker_holds_a_job() -> None:
    worker = make_worker(sleeping_until=timezone.now() + timedelta(days=1))
    assert read_report("default", jobs=5).workers[0].state == WorkerState.IDLE

    make_job(state=State.RUNNING, worker_id=worker.pk)

    assert read_report("default", jobs=0).workers[0].state == WorkerState.WORKING
