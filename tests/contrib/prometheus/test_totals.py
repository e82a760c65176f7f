"""Counters of metrics: they never go back, and count each run once."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from django_tenantqueue.contrib.prometheus import totals as totals_of_tasks
from django_tenantqueue.contrib.prometheus.models import FigureTotal
from django_tenantqueue.contrib.prometheus.totals import NUMBERS, OTHERS, Total, read_totals
from django_tenantqueue.models import Figure
from django_tenantqueue.operations import maintain
from tests.factories import make_figure

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 5, 20, 15, 30, tzinfo=UTC)


def count(at: datetime, *names: str, **columns) -> None:
    """Count one run of each task in a minute, as a worker does: also among all."""
    for name in (*names, *[""] * bool(names)):
        times = len(names) if name == "" else 1
        figure = Figure.objects.filter(queue_id=0, at=at, task=name, error="", minutes=1).first()
        if figure is None:
            make_figure(
                at=at, task=name, started=times, succeeded=times, run_seconds=0.1 * times,
                wait_seconds=0.3 * times, waits=[0, times], runs=[times], **columns,
            )  # fmt: skip
        else:
            Figure.objects.filter(pk=figure.pk).update(
                started=figure.started + times,
                succeeded=figure.succeeded + times,
                run_seconds=figure.run_seconds + 0.1 * times,
                wait_seconds=figure.wait_seconds + 0.3 * times,
                waits=[0, figure.waits[1] + times],
                runs=[figure.runs[0] + times],
            )


def totals() -> dict[str, Total]:
    return {total.task: total for total in read_totals("default")}


def started() -> dict[str, int]:
    return {name: total.started for name, total in totals().items()}


def test_there_are_no_counters_when_no_maintenance_has_run():
    count(NOW, "a")

    assert totals() == {}


def test_task_begins_at_zero_when_it_gets_a_counter():
    maintain.thin_figures("default", NOW)
    count(NOW, "a", "b")
    assert started() == {OTHERS: 2}

    maintain.thin_figures("default", NOW + timedelta(minutes=1))

    assert started() == {OTHERS: 2, "a": 0, "b": 0}
    count(NOW + timedelta(minutes=1), "a")
    assert started() == {OTHERS: 2, "a": 1, "b": 0}


def test_nothing_changes_when_figures_are_added_to_the_totals_thinned_and_dropped():
    maintain.thin_figures("default", NOW)
    count(NOW, "a", "b")
    maintain.thin_figures("default", NOW)
    count(NOW, "a")
    count(NOW + timedelta(minutes=1), "b", "a")
    before = totals()
    assert started() == {OTHERS: 2, "a": 2, "b": 1}

    for hours in (0.5, 5, 30, 24 * 6):
        maintain.thin_figures("default", NOW + timedelta(hours=hours))
        # a step counts an hour at most
        while FigureTotal.objects.get(task="").at < NOW + timedelta(hours=hours - 1):
            maintain.thin_figures("default", NOW + timedelta(hours=hours))
        assert totals() == before
    Figure.objects.all().delete()  # as after 400 days
    assert totals() == before


def test_minutes_stay_when_they_are_not_in_the_totals_yet():
    maintain.thin_figures("default", NOW)
    count(NOW + timedelta(hours=3), "a")

    maintain.thin_figures("default", NOW + timedelta(hours=10))

    assert Figure.objects.filter(minutes=1).count() == 2
    assert started()[OTHERS] == 1


def test_full_step_is_told_when_more_minutes_are_to_be_counted():
    maintain.thin_figures("default", NOW)

    assert maintain.thin_figures("default", NOW + timedelta(hours=3)) == maintain.BATCH
    maintain.thin_figures("default", NOW + timedelta(hours=3))
    maintain.thin_figures("default", NOW + timedelta(hours=3))
    assert maintain.thin_figures("default", NOW + timedelta(hours=3)) == 0


def test_others_stay_when_a_task_loses_its_counter(monkeypatch):
    monkeypatch.setattr(totals_of_tasks, "COUNTED_TASKS", 1)
    maintain.thin_figures("default", NOW)
    count(NOW, "old", "never")
    count(NOW, "old")
    maintain.thin_figures("default", NOW)
    count(NOW, "old", "never")
    assert started() == {OTHERS: 4, "old": 1}

    late = NOW + timedelta(days=8)
    while maintain.thin_figures("default", late) == maintain.BATCH:
        pass
    count(late, "new")
    maintain.thin_figures("default", late)
    count(late, "new")

    assert started() == {OTHERS: 5, "new": 1}


def test_tasks_share_a_counter_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(totals_of_tasks, "COUNTED_TASKS", 2)
    maintain.thin_figures("default", NOW)
    count(NOW, "a", "b", "c")
    count(NOW, "b", "c")
    maintain.thin_figures("default", NOW)

    count(NOW, "a", "b", "c")

    assert started() == {OTHERS: 6, "b": 1, "c": 1}


def test_counters_never_go_back_whatever_happens(monkeypatch):
    monkeypatch.setattr(totals_of_tasks, "COUNTED_TASKS", 3)
    chance = random.Random(15)
    now, runs = NOW, 0
    seen: dict[str, Total] = {}
    maintain.thin_figures("default", now)
    for _ in range(150):
        now += timedelta(minutes=chance.choice([0, 1, 1, 7, 50, 300]))
        if chance.random() < 0.6:
            names = chance.sample("abcdef", chance.randint(1, 4))
            count(now.replace(second=0), *names)
            runs += len(names)
        if chance.random() < 0.6:
            maintain.thin_figures("default", now)
        read = totals()
        assert sum(total.started for total in read.values()) == runs
        for name, before in seen.items():
            for number in NUMBERS:
                assert getattr(read[name], number) >= getattr(before, number)
            for places in ("waits", "runs"):
                old = getattr(before, places)
                assert all(n >= o for n, o in zip(getattr(read[name], places), old, strict=False))
        seen = read
    assert set(seen) > {OTHERS}
