"""The leader enqueues what schedules say, each tick once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import IntegrityError
from django.test.utils import CaptureQueriesContext

from django_tenantqueue import TaskHooks
from django_tenantqueue.calls.arguments import Placeholder
from django_tenantqueue.contrib.schedules import firing
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.firing import fire_schedules, seconds_to_next_schedule
from django_tenantqueue.contrib.schedules.models import Schedule, ScheduleQuerySet
from django_tenantqueue.contrib.schedules.services import tune_schedule
from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations.max_waiting import forget_rooms
from django_tenantqueue.testing import run_pending, travel
from django_tenantqueue.worker.connection import connect
from tests.calls.year import END, START, daily
from tests.factories import make_queue
from tests.testapp.tasks import echo, noop

pytestmark = pytest.mark.django_db(transaction=True)
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def scheduled(
    when: str = "*/10 * * * *", *, tick_at: datetime = NOON, task: str = noop.name, **columns: Any
) -> Schedule:
    row = make_schedule(f"schedule-{Schedule.objects.count()}", task, when, **columns)
    Schedule.objects.filter(pk=row.pk).update(tick_at=tick_at, next_at=tick_at)
    row.refresh_from_db()
    return row


def fire(now: datetime) -> int:
    """Fire until nothing is due."""
    total = 0
    while fired := fire_schedules("default", now):
        total += fired
    return total


def again(row: Schedule) -> Schedule:
    row.refresh_from_db()
    return row


def test_job_is_enqueued_when_a_tick_comes() -> None:
    row = scheduled(tenant="acme", queue="reports", priority=7)

    assert fire(NOON - timedelta(seconds=1)) == 0
    assert fire(NOON + timedelta(seconds=2)) == 1

    job = Job.objects.get()
    assert (job.queue.tenant, job.queue.name, job.priority) == ("acme", "reports", 7)
    row = again(row)
    assert (row.last_job_id, row.last_tick_at) == (job.pk, NOON)
    assert row.tick_at == row.next_at == NOON + 10 * MINUTE
    assert row.lateness_seconds == 2.0
    assert fire(NOON + timedelta(seconds=2)) == 0


@pytest.mark.heavy
def test_each_tick_of_a_year_is_fired_once_when_clocks_are_turned() -> None:
    times = {
        "Europe/Berlin": (2, 30),
        "America/New_York": (1, 30),
        "Australia/Lord_Howe": (2, 15),
        "America/Santiago": (0, 30),
        "Asia/Kolkata": (23, 30),
    }
    for zone, (hour, minute) in times.items():
        row = make_schedule(
            zone,
            echo,
            f"{minute} {hour} * * *",
            time_zone=zone,
            args=[Placeholder("scheduled_at")],
            catch_up="all",
        )
        row.tick_at = row.next_at = row.recurrence.next(START - timedelta(microseconds=1))
        row.save()

    now = START
    while now < END:
        now = min(now + timedelta(days=7), END)
        fire(now - timedelta(microseconds=1))

    fired = [job.args["args"][0]["value"] for job in Job.objects.order_by("pk")]
    table = [moment for zone, time in times.items() for moment in daily(zone, *time)]
    assert sorted(fired) == sorted(moment.isoformat() for moment in table)


def rows_read() -> int:
    """Return how many rows of schedules this session has read, up to a constant."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables "
            "WHERE relname = 'tenantqueue_schedule'"
        )
        return int(cursor.fetchone()[0])


def test_edit_acts_at_the_next_tick_and_no_other_schedule_is_read() -> None:
    row = make_schedule("edited", noop, "0 0 1 1 *", time_zone="UTC", catch_up="once")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tenantqueue_schedule (name, tenant, task, args, kwargs, queue, kind, "
            "expression, time_zone, tick_at, next_at) SELECT 's-' || n, '', task, args, kwargs, "
            "queue, kind, expression, time_zone, '2099-01-01', '2099-01-01' "
            "FROM tenantqueue_schedule, generate_series(1, 20000) n"
        )
        cursor.execute("ANALYZE tenantqueue_schedule")

    tune_schedule(row.pk, expression="0 0 * * *")

    with transaction.atomic():
        before = rows_read()
        assert seconds_to_next_schedule("default") <= 86_400
        tick = again(row).next_at
        assert tick is not None
        past = tick - timedelta(days=1)
        Schedule.objects.filter(pk=row.pk).update(tick_at=past, next_at=past)
        assert (fire_schedules("default"), fire_schedules("default")) == (1, 0)
        assert rows_read() - before < 20
    assert again(row).next_at == tick
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("catch_up", "ticks"), [("skip", []), ("once", [60]), ("all", [0, 10, 20, 30, 40, 50, 60])]
)
def test_missed_ticks_follow_the_policy(catch_up: str, ticks: list[int]) -> None:
    row = scheduled(task=echo.name, args=[Placeholder("scheduled_at")], catch_up=catch_up)

    fire(NOON + 69 * MINUTE)  # the last tick was nine minutes ago

    times = [NOON + minutes * MINUTE for minutes in ticks]
    found = [job.args["args"][0]["value"] for job in Job.objects.order_by("pk")]
    assert found == [time.isoformat() for time in times]
    assert again(row).next_at == NOON + 70 * MINUTE


def test_latest_tick_runs_when_it_was_a_moment_ago() -> None:
    scheduled(catch_up="skip")

    fire(NOON + 61 * MINUTE)

    assert Job.objects.count() == 1


@pytest.mark.parametrize(("overlap", "jobs"), [("allow", 2), ("skip", 1)])
def test_tick_follows_the_policy_when_the_last_job_goes_on(overlap: str, jobs: int) -> None:
    row = scheduled(overlap=overlap)

    fire(NOON)
    fire(NOON + 10 * MINUTE)

    assert Job.objects.count() == jobs
    assert again(row).next_at == NOON + 20 * MINUTE
    with travel(NOON + 10 * MINUTE):
        run_pending()
    fire(NOON + 20 * MINUTE)
    assert Job.objects.count() == jobs + 1


def test_single_run_is_over_when_it_was_fired() -> None:
    row = make_schedule("once", noop, datetime(2030, 1, 1, tzinfo=UTC))
    assert row.next_at == datetime(2030, 1, 1, tzinfo=UTC)

    fire(datetime(2030, 1, 1, 0, 0, 1, tzinfo=UTC))

    assert again(row).next_at is None
    assert row.tick_at is None
    assert Job.objects.count() == 1
    assert seconds_to_next_schedule("default") is None


def test_jobs_are_spread_when_there_is_jitter() -> None:
    rows = [scheduled(jitter_seconds=300) for _ in range(8)]

    fire(NOON)

    after = {again(row).next_at - row.tick_at for row in rows}
    assert {row.tick_at for row in rows} == {NOON + 10 * MINUTE}
    assert len(after) > 4
    assert all(timedelta(0) <= late <= timedelta(seconds=300) for late in after)


def unknown(row: Schedule) -> None:
    Schedule.objects.filter(pk=row.pk).update(task="nowhere.task")


def wrong_arguments(row: Schedule) -> None:
    Schedule.objects.filter(pk=row.pk).update(kwargs={"nothing": 1})


def full_queue(row: Schedule) -> None:
    Schedule.objects.filter(pk=row.pk).update(queue="full")
    make_queue("", "full", max_waiting=0)


def retired_queue(row: Schedule) -> None:
    Schedule.objects.filter(pk=row.pk).update(queue="old")
    make_queue("", "old", retired=True)


def not_allowed(row: Schedule) -> None:
    Schedule.objects.filter(pk=row.pk).update(task="os:system", args=["true"])


def bad_expression(row: Schedule) -> None:
    Schedule.objects.filter(pk=row.pk).update(expression="every now and then")


def bad_zone(row: Schedule) -> None:
    Schedule.objects.filter(pk=row.pk).update(time_zone="Mars/Olympus")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (unknown, "UnknownTask: no task is named 'nowhere.task' here"),
        (wrong_arguments, "TypeError"),
        (full_queue, "QueueFull"),
        (retired_queue, "QueueRetired"),
        (not_allowed, "NotAllowed"),
        (bad_expression, "is not a cron expression"),
        (bad_zone, "is not a time zone"),
    ],
)
def test_schedule_keeps_its_error_when_it_fails_and_the_others_go_on(
    spoil: Callable[[Schedule], None], said: str
) -> None:
    rows = [scheduled() for _ in range(3)]
    spoil(rows[1])

    assert fire(NOON) == 3

    failed = again(rows[1])
    assert said in failed.last_error
    assert (failed.failures, failed.last_error_at, failed.last_job_id) == (1, NOON, None)
    assert (failed.tick_at, failed.next_at) == (NOON, NOON + firing.RETRY)
    assert Job.objects.count() == 2
    for row in (rows[0], rows[2]):
        assert again(row).last_job_id
        assert row.last_error == ""


def test_tick_is_made_up_for_when_the_cause_of_a_failure_is_gone() -> None:
    row = scheduled("0 12 * * *", task=echo.name, args=[Placeholder("scheduled_at")])
    Schedule.objects.update(task="nowhere.task")
    now = NOON
    for _ in range(12):
        fire(now)
        now = again(row).next_at
    assert row.failures == 12
    assert now < NOON + timedelta(hours=5)
    Schedule.objects.update(task=echo.name)

    fire(now)

    assert Job.objects.get().args["args"][0]["value"] == NOON.isoformat()
    row = again(row)
    assert (row.failures, row.last_error, row.tick_at) == (0, "", NOON + timedelta(days=1))
    assert row.lateness_seconds == (now - NOON).total_seconds()


def test_hook_that_raises_leaves_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hooks(TaskHooks):
        def enqueue(self, job: Job) -> None:
            raise RuntimeError("no")

    monkeypatch.setattr(noop, "hooks", Hooks())
    row = scheduled()

    fire(NOON)

    assert not Job.objects.exists()
    assert again(row).last_error == "RuntimeError: no"


def test_nothing_is_fired_when_the_leader_dies_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [scheduled() for _ in range(3)]
    monkeypatch.setattr(ScheduleQuerySet, "bulk_create", killed)

    with pytest.raises(KeyboardInterrupt):
        fire_schedules("default", NOON)
    monkeypatch.undo()

    assert not Job.objects.exists()
    assert fire(NOON) == 3
    assert Job.objects.count() == 3
    assert all(again(row).last_job_id for row in rows)


def killed(*args: Any, **kwargs: Any) -> None:
    raise KeyboardInterrupt


def test_schedule_is_left_to_the_one_who_has_it() -> None:
    rows = [scheduled() for _ in range(2)]
    other = connect("default", "test")
    try:
        with other.transaction():
            other.execute("SELECT FROM tenantqueue_schedule WHERE id = %s FOR UPDATE", [rows[0].pk])
            assert fire_schedules("default", NOON) == 1
    finally:
        other.close()

    assert again(rows[1]).last_job_id
    assert fire_schedules("default", NOON) == 1


def test_disabled_schedule_does_not_run() -> None:
    scheduled(enabled=False)

    assert fire(NOON) == 0
    assert seconds_to_next_schedule("default") is None


def test_step_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "SMALL_BATCH", 2)
    for _ in range(5):
        scheduled()

    assert [fire_schedules("default", NOON) for _ in range(4)] == [2, 2, 1, 0]


def test_each_tenant_of_a_queue_gets_a_job_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "SMALL_BATCH", 2)
    for number in range(5):
        make_queue(f"tenant-{number}", "reports", max_waiting=0 if number == 3 else None)
    make_queue("other", "default")
    make_queue("gone", "reports", retired=True)
    row = scheduled(tenant=None, queue="reports", task=echo.name, args=[Placeholder("tenant")])

    fire(NOON)

    jobs = Job.objects.select_related("queue")
    assert sorted(job.queue.tenant for job in jobs) == [f"tenant-{n}" for n in (0, 1, 2, 4)]
    row = again(row)
    assert "tenant 'tenant-3': QueueFull" in row.last_error
    assert (row.after_tenant, row.next_at) == (None, NOON + 10 * MINUTE)
    TenantQueue.objects.update(max_waiting=None)
    forget_rooms()
    fire(NOON + 10 * MINUTE)
    assert Job.objects.count() == 9
    assert again(row).last_error == ""
    with travel(NOON + 10 * MINUTE):
        ran = run_pending()
    assert sorted(job.result for job in ran) == sorted(
        [f"tenant-{n}" for n in (0, 1, 2, 4)] + [f"tenant-{n}" for n in range(5)]
    )


def test_look_costs_one_statement_when_nothing_is_due() -> None:
    scheduled(tick_at=datetime(2099, 1, 1, tzinfo=UTC))

    with CaptureQueriesContext(connection) as queries:
        assert seconds_to_next_schedule("default") > 1e6

    assert len(queries) <= 1


@pytest.mark.parametrize(
    "columns",
    [
        {"kind": "yearly"},
        {"catch_up": "maybe"},
        {"overlap": "maybe"},
        {"source": "elsewhere"},
        {"jitter_seconds": -1},
        {"tenant": None, "overlap": "skip"},
        {"starts_at": NOON, "ends_at": NOON - MINUTE},
        {"tick_at": None},
        {"name": "schedule-1"},
    ],
)
def test_row_is_refused_when_raw_sql_writes_nonsense(columns: dict[str, Any]) -> None:
    row = scheduled()
    scheduled()

    with pytest.raises(IntegrityError), transaction.atomic():
        Schedule.objects.filter(pk=row.pk).update(**columns)
