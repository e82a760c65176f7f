"""What features add to the fleet's maintenance, and to what a test does in place of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.features import Duty, Feature
from django_tenantqueue.models import Duty as DutyRow
from django_tenantqueue.models import Figure
from django_tenantqueue.operations import history, maintain
from django_tenantqueue.testing import run_pending
from django_tenantqueue.worker.supervisor.lease import Lease
from django_tenantqueue.worker.supervisor.maintenance import Maintenance
from tests.factories import make_figure

Install = Callable[[Feature], None]
NOW = datetime(2026, 5, 20, 15, 30, tzinfo=UTC)
OLD = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def maintenance() -> Iterator[Callable[[], Maintenance]]:
    leases = [Lease("default", "test")]
    yield lambda: Maintenance(leases[0])
    if leases[0].connection is not None:
        leases[0].connection.close()
    connection.close()  # whose waits for locks are bounded


class Counting(Feature):
    """Counts the steps of a duty."""

    def __init__(self) -> None:
        self.steps = 0

    def duties(self) -> Iterable[Duty]:
        def step(using: str) -> int:
            self.steps += 1
            return 7

        yield Duty("count", step, 60.0)


@pytest.mark.django_db(transaction=True)
def test_duty_of_a_feature_is_done_and_recorded(install: Install, maintenance) -> None:
    counting = Counting()
    install(counting)

    maintenance().run_once()

    assert counting.steps == 1
    assert DutyRow.objects.get(name="count").outcome == "7"


def test_duties_of_features_follow_those_of_the_core(install: Install, maintenance) -> None:
    install(Counting())

    names = [duty.name for duty in maintenance()._duties]

    assert names[:13] == [
        "promote",
        "expire",
        "let_through",
        "feed",
        "rescue",
        "prune_sessions",
        "prune_keys",
        "prune_changes",
        "prune_mutes",
        "refresh_statistics",
        "thin_figures",
        "make_history",
        "drop_history",
    ]
    assert names[-1] == "count"


@pytest.mark.usefixtures("core_alone")
def test_core_has_no_duty_of_a_feature(maintenance) -> None:
    names = {duty.name for duty in maintenance()._duties}

    assert "rescue" in names
    assert not names & {"fire_schedules", "check_alerts", "prune_requests", "prune_history"}


class Taking(Feature):
    def before_thinning(self, using: str, now: datetime | None) -> tuple[datetime, bool]:
        return OLD, True


@pytest.mark.django_db
def test_minutes_stay_until_a_feature_has_taken_them(install: Install) -> None:
    make_figure(at=NOW - timedelta(days=3))
    install(Taking())

    assert maintain.thin_figures("default", NOW) == maintain.BATCH

    assert Figure.objects.get().minutes == 1


@pytest.mark.django_db
@pytest.mark.usefixtures("core_alone")
def test_minutes_are_merged_when_no_feature_wants_them() -> None:
    make_figure(at=NOW - timedelta(days=3))

    assert maintain.thin_figures("default", NOW) == 1

    assert Figure.objects.get().minutes == 60


class Keeping(Feature):
    """Keeps all jobs, and what it was told."""

    said: tuple[datetime, datetime | None] | None = None

    def history_kept_from(
        self, using: str, now: datetime, before: datetime | None
    ) -> datetime | None:
        self.said = (now, before)
        return None


@pytest.mark.django_db
def test_months_stay_that_a_feature_keeps(install: Install, settings) -> None:
    settings.TENANTQUEUE = {"HISTORY_KEEP_MONTHS": 1}
    history.make_leaf("default", OLD.date())
    assert OLD.date() in [leaf.month for leaf in history.dropped_whole("default", NOW)]
    keeping = Keeping()
    install(keeping)

    assert history.dropped_whole("default", NOW) == []
    assert keeping.said == (NOW, datetime(2026, 4, 1, tzinfo=UTC))
    assert maintain.drop_history("default", NOW.date()) == []


@pytest.mark.django_db
@pytest.mark.usefixtures("core_alone")
@pytest.mark.parametrize(("keep", "dropped"), [(None, False), (4, False), (3, True)])
def test_months_are_dropped_by_the_setting_alone(keep: int | None, dropped: bool, settings) -> None:
    settings.TENANTQUEUE = {"HISTORY_KEEP_MONTHS": keep}
    history.make_leaf("default", OLD.date())

    months = [leaf.month for leaf in history.dropped_whole("default", NOW)]

    assert (OLD.date() in months) is dropped


class Firing(Feature):
    """Has something to do twice."""

    left = 2

    def run_due(self, using: str) -> bool:
        self.left -= 1
        return self.left >= 0


@pytest.mark.django_db
def test_tests_do_what_is_due_until_nothing_is_left(install: Install) -> None:
    firing = Firing()
    install(firing)

    run_pending()

    assert firing.left == -1


class Broken(Feature):
    """A duty whose step or pause goes wrong, before another one."""

    def __init__(self, step: Callable[[str], object], pause: Callable[[object], float]) -> None:
        self.step, self.pause = step, pause
        self.others: list[str] = []

    def duties(self) -> Iterable[Duty]:
        yield Duty("broken", self.step, 60.0, pause_after=self.pause)
        yield Duty("other", self.others.append, 60.0)


def quote_hostile(using: str) -> object:
    raise ValueError("a\x00b\udc80")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("step", "pause", "error"),
    [
        (quote_hostile, lambda done: 1.0, "ValueError: a\\x00b\\udc80"),
        (lambda using: "a\x00b", lambda done: 1.0, ""),
        (lambda using: 1, lambda done: done / 0, "ZeroDivisionError: division by zero"),
        (lambda using: 1, lambda done: None, "TypeError: "),
    ],
)
def test_other_duties_are_done_when_one_cannot_be_recorded_or_paused(
    install: Install, maintenance, step, pause, error: str
) -> None:
    broken = Broken(step, pause)
    install(broken)

    maintenance().run_once()

    assert broken.others == ["default"]
    assert DutyRow.objects.get(name="broken").error.startswith(error)


def lose_connection(using: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.django_db(transaction=True)
def test_other_duties_have_their_turn_when_one_breaks_the_connection_each_time(
    install: Install, maintenance, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken(lose_connection, lambda done: 0.0)
    install(broken)
    leader = maintenance()

    for _ in range(2):
        leader.run_once()

    assert broken.others == ["default"]
    assert "maintenance task broken lost the database connection" in caplog.messages


@pytest.mark.parametrize(
    ("name", "interval", "said"),
    [("late", "1 min", "must be seconds or a timedelta"), ("x" * 51, 1.0, "at most 50 characters")],
)
def test_duty_says_what_is_wrong_with_it(name: str, interval, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        Duty(name, lambda using: 0, interval)


def test_interval_of_a_duty_may_be_a_timedelta() -> None:
    for interval in (timedelta(minutes=1), 60):
        assert Duty("late", lambda using: 0, interval).interval_seconds == 60.0
