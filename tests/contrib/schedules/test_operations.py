"""What operators and code do to schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.utils import timezone

from django_tenantqueue import Cron, Every, Placeholder, task
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.declared import Synced, sync_schedules
from django_tenantqueue.contrib.schedules.firing import fire_schedules
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.contrib.schedules.services import (
    delete_schedules,
    disable_schedules,
    enable_schedules,
    run_schedules,
    tune_schedule,
)
from django_tenantqueue.exceptions import InvalidArgument, InvalidOption, QueueFull, UnknownTask
from django_tenantqueue.models import Change, Job
from django_tenantqueue.testing import run_pending
from tests.factories import made_changes, make_queue
from tests.testapp.tasks import echo, noop

pytestmark = pytest.mark.django_db
FAR = datetime(2090, 5, 1, 12, tzinfo=UTC)


def test_jitter_is_seconds_or_a_timedelta() -> None:
    for name, jitter in (("a", 90), ("b", timedelta(seconds=90))):
        assert make_schedule(name, noop, Every(hours=1, jitter=jitter)).jitter_seconds == 90.0


def test_schedule_that_the_orm_creates_is_planned() -> None:
    row = Schedule.objects.create(
        name="nightly", task=noop.name, kind="cron", expression="0 3 * * *"
    )

    assert row.next_at == row.tick_at == row.recurrence.next(timezone.now())
    with pytest.raises(InvalidOption, match="expression"):
        Schedule.objects.create(name="x", task=noop.name, kind="cron", expression="often")


@pytest.mark.parametrize(
    ("when", "kind", "expression"),
    [
        ("0 3 * * *", "cron", "0 3 * * *"),
        (Every(minutes=5), "interval", "5m"),
        (FAR, "once", "2090-05-01T12:00:00+00:00"),
    ],
)
def test_schedule_is_due_at_its_next_tick_when_it_is_made(
    when: Any, kind: str, expression: str
) -> None:
    row = make_schedule("nightly", noop, when, tenant="acme")

    stored = Schedule.objects.get()
    assert (stored.kind, stored.expression, stored.task) == (kind, expression, noop.name)
    assert stored.tick_at == stored.next_at == row.recurrence.next(timezone.now())
    change = Change.objects.get()
    assert (change.action, change.object_kind, change.tenant) == ("add", "schedule", "acme")


@pytest.mark.parametrize(
    ("when", "columns"),
    [
        ("0 3 * *", {}),
        ("0 3 * * *", {"time_zone": "Mars/Olympus"}),
        ("0 3 * * *", {"jitter_seconds": -1}),
        ("0 3 * * *", {"priority": 40_000}),
        ("0 3 * * *", {"catch_up": "maybe"}),
        ("0 3 * * *", {"all_tenants": True}),
        ("0 3 * * *", {"tenant": None, "overlap": "skip"}),
        ("0 3 * * *", {"starts_at": FAR, "ends_at": FAR - timedelta(days=1)}),
        ("0 3 * * *", {"colour": "red"}),
        (datetime(2030, 1, 1), {}),  # noqa: DTZ001 - naive
        (5, {}),
    ],
)
def test_schedule_is_refused_when_a_value_is_wrong(when: Any, columns: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, InvalidOption)):
        make_schedule("nightly", noop, when, **columns)

    assert not Schedule.objects.exists()


def test_second_of_a_name_is_refused_within_a_tenant() -> None:
    make_schedule("nightly", noop, "0 3 * * *", tenant="acme")
    make_schedule("nightly", noop, "0 3 * * *", tenant="zebra")

    with pytest.raises(ValidationError, match="already exists"):
        make_schedule("nightly", noop, "0 4 * * *", tenant="acme")


def test_edit_of_the_times_counts_at_once() -> None:
    row = make_schedule("nightly", noop, "0 3 1 1 *")

    tune_schedule(row.pk, kind="interval", expression="10m")

    row.refresh_from_db()
    assert row.next_at < timezone.now() + timedelta(minutes=10)
    assert made_changes()[-1][0] == "tune"


def test_edit_of_other_columns_leaves_the_next_tick() -> None:
    row = make_schedule("nightly", noop, "0 3 * * *")
    due = timezone.now() - timedelta(seconds=1)
    Schedule.objects.update(tick_at=due, next_at=due)

    tune_schedule(row.pk, priority=7)

    assert Schedule.objects.get().next_at == due
    fire_schedules("default")
    assert Job.objects.get().priority == 7


def test_mended_schedule_is_tried_at_once() -> None:
    row = make_schedule("nightly", noop, "0 3 * * *")
    due = timezone.now() - timedelta(seconds=1)
    Schedule.objects.update(tick_at=due, next_at=due, task="nowhere.task")
    fire_schedules("default")
    assert fire_schedules("default") == 0

    tune_schedule(row.pk, task=noop.name)

    assert fire_schedules("default") == 1
    assert Job.objects.count() == 1


def test_arguments_stay_out_of_the_list_of_changes() -> None:
    row = make_schedule("nightly", echo, "0 3 * * *", args=["hush-1"])

    tune_schedule(row.pk, args=["hush-2"], priority=3)

    assert "hush" not in str(list(Change.objects.values()))
    assert Change.objects.order_by("-pk")[0].after == {"priority": 3, "arguments": ["args"]}


def test_schedules_are_disabled_and_enabled() -> None:
    rows = [make_schedule(f"s{n}", noop, "0 3 * * *") for n in range(2)]
    ids = [row.pk for row in rows]

    assert disable_schedules(ids) == ids
    assert disable_schedules(ids) == []
    assert not Schedule.objects.filter(enabled=True).exists()
    assert enable_schedules(ids) == ids
    assert [entry[0] for entry in made_changes()[2:]] == ["disable", "enable"]


def test_schedule_runs_now_when_it_is_asked_for() -> None:
    row = make_schedule(
        "nightly", echo, "0 3 * * *", args=[Placeholder("scheduled_at")], enabled=False
    )
    next_at = row.next_at

    (job,) = run_schedules([row.pk])

    (ran,) = run_pending()
    assert ran.pk == job.pk
    row.refresh_from_db()
    assert (row.next_at, row.last_job_id) == (next_at, job.pk)
    assert made_changes()[-1] == ("run_now", {}, {"job": [job.pk]})


def test_run_now_raises_what_enqueueing_raises() -> None:
    make_queue("", "full", max_waiting=0)
    row = make_schedule("a", noop, "0 3 * * *", queue="full")
    lost = make_schedule("b", "nowhere.task", "0 3 * * *")

    with pytest.raises(QueueFull):
        run_schedules([row.pk])
    with pytest.raises(UnknownTask):
        run_schedules([lost.pk])
    assert not Job.objects.exists()


def test_jobs_stay_when_their_schedule_is_deleted() -> None:
    row = make_schedule("nightly", noop, "0 3 * * *")
    run_schedules([row.pk])

    assert delete_schedules([row.pk]) == [row.pk]

    assert Job.objects.count() == 1
    assert made_changes()[-1][0] == "delete"


# placeholders


@task
def tell(**values: Any) -> dict[str, Any]:
    """Return what it was given."""
    return {name: [type(value).__name__, str(value)] for name, value in values.items()}


def test_placeholders_have_their_values_when_the_job_runs() -> None:
    names = ("attempt", "tenant", "job_id")
    given = {name: Placeholder(name) for name in names}
    job = tell.using(tenant="acme").delay(**given, deep={"in": [Placeholder("tenant")]})

    (ran,) = run_pending()

    assert ran.result == {
        "attempt": ["int", "1"],
        "tenant": ["str", "acme"],
        "job_id": ["int", str(job.pk)],
        "deep": ["dict", "{'in': ['acme']}"],
    }


def test_tick_is_a_moment_in_utc() -> None:
    row = make_schedule("s", tell, "0 3 * * *", kwargs={"at": Placeholder("scheduled_at")})
    due = datetime.now(UTC).replace(microsecond=0)
    Schedule.objects.filter(pk=row.pk).update(tick_at=due, next_at=due)
    fire_schedules("default")

    (ran,) = run_pending()

    assert ran.result == {"at": ["datetime", str(due)]}


HOSTILE = [
    {"$": "tenant"},
    {"__tenantqueue": "tenant"},
    '{"__tenantqueue__":"tenant"}',
    '{"__tenantqueue__":"scheduled_at"}',
    "%(tenant)s {tenant} ${tenant} {{ tenant }}",
    "'; DROP TABLE tenantqueue_schedule; --",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_value_stays_a_value_when_it_looks_like_a_placeholder(value: Any) -> None:
    echo.using(tenant="acme").delay(value)
    row = make_schedule("s", echo, "0 3 * * *", args=[value])
    run_schedules([row.pk])

    assert [job.result for job in run_pending()] == [value, value]


def test_users_dict_cannot_be_a_placeholder() -> None:
    with pytest.raises(InvalidArgument, match="reserved"):
        echo.delay({"__tenantqueue__": "tenant"})
    with pytest.raises(InvalidArgument, match="reserved"):
        make_schedule("s", echo, "0 3 * * *", args=[{"__tenantqueue__": "tenant"}])


def test_placeholder_of_schedules_is_refused_elsewhere() -> None:
    with pytest.raises(InvalidArgument, match="for the arguments of schedules"):
        echo.delay([Placeholder("scheduled_at")])
    with pytest.raises(InvalidArgument, match="must be one of"):
        Placeholder("password")


# schedules of the code


def declare(schedule: Any) -> Any:
    @task(name="tests.nightly", schedule=schedule)
    def nightly(day: Any = None) -> None:
        """Do nothing."""

    return nightly


@pytest.mark.usefixtures("own_tasks")
def test_declared_schedule_is_written_once() -> None:
    declare(Cron("0 3 * * *", time_zone="Europe/Berlin", args=(Placeholder("scheduled_at"),)))

    assert sync_schedules("default") == Synced(1, 0, 0)
    assert sync_schedules("default") == Synced(0, 0, 0)

    row = Schedule.objects.get()
    assert (row.name, row.task, row.source) == ("tests.nightly", "tests.nightly", "code")
    assert (row.time_zone, row.enabled) == ("Europe/Berlin", True)
    assert row.args == [{"__tenantqueue__": "scheduled_at"}]


@pytest.mark.usefixtures("own_tasks")
def test_declared_schedule_follows_the_code_and_stays_disabled() -> None:
    declare("0 3 * * *")
    sync_schedules("default")
    disable_schedules([Schedule.objects.get().pk])

    declare(Every(minutes=5))
    assert sync_schedules("default") == Synced(0, 1, 0)

    row = Schedule.objects.get()
    assert (row.kind, row.expression, row.enabled) == ("interval", "5m", False)


@pytest.mark.usefixtures("own_tasks")
def test_schedule_is_disabled_and_marked_when_the_code_no_longer_declares_it() -> None:
    declare("0 3 * * *")
    sync_schedules("default")
    declare(None)

    assert sync_schedules("default") == Synced(0, 0, 1)

    row = Schedule.objects.get()
    assert (row.enabled, row.source) == (False, "removed")
    declare("0 3 * * *")
    assert sync_schedules("default") == Synced(0, 1, 0)
    row.refresh_from_db()
    assert (row.enabled, row.source) == (True, "code")


def test_schedule_of_an_unknown_task_goes_with_the_command_alone(own_tasks: dict[str, Any]) -> None:
    declare("0 3 * * *")
    sync_schedules("default")
    del own_tasks["tests.nightly"]
    assert sync_schedules("default") == Synced(0, 0, 0)

    call_command("tenantqueue", "schedules", "sync")

    assert Schedule.objects.get().source == "removed"


@pytest.mark.usefixtures("own_tasks")
def test_schedules_of_operators_are_left_alone() -> None:
    make_schedule("mine", noop, "0 3 * * *")
    make_schedule("tests.nightly", noop, "0 3 * * *")
    declare("0 4 * * *")

    assert sync_schedules("default", whole=True) == Synced(0, 0, 0)

    assert set(Schedule.objects.values_list("source", "expression")) == {("admin", "0 3 * * *")}


@pytest.mark.usefixtures("own_tasks")
@pytest.mark.parametrize("schedule", [5, Cron("* * * * *", args=(1, 2, 3)), Every()])
def test_declaration_is_refused_when_it_is_wrong(schedule: Any) -> None:
    with pytest.raises((InvalidOption, TypeError)):
        declare(schedule)
