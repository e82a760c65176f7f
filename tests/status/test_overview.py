"""What the first page of the operators reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_tenantqueue.models import TenantQueue
from django_tenantqueue.queries.figures import ALL, Counts, add_figures
from django_tenantqueue.status.display_limits import LISTED
from django_tenantqueue.status.overview import read_overview
from tests.factories import make_job, make_jobs, make_queue
from tests.operations.test_figures import make_figure

pytestmark = pytest.mark.django_db


def test_counts_of_all_jobs_are_summed_by_period_when_the_range_is_an_hour():
    now = datetime.now(UTC)
    for minutes, succeeded in ((10, 3), (20, 4), (90, 100)):
        make_figure(now - timedelta(minutes=minutes), queue_id=ALL, task="", succeeded=succeeded)

    overview = read_overview("default", 1)

    assert overview.counts.succeeded == 7
    assert sum(overview.ended) == 7
    assert len(overview.ended) == 61


def test_rates_are_those_of_the_last_whole_period():
    now = datetime.now(UTC)
    start = now.replace(second=0, microsecond=0)
    make_figure(start - timedelta(minutes=1), queue_id=ALL, task="", started=120, succeeded=60)
    make_figure(start, queue_id=ALL, task="", started=9999, succeeded=9999)

    overview = read_overview("default", 1)

    if datetime.now(UTC).minute == start.minute:
        assert (overview.started_per_second, overview.ended_per_second) == (2.0, 1.0)
    else:
        assert overview.started_per_second == 9999 / 60


def test_merged_hours_count_when_the_range_is_a_day():
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    make_figure(hour - timedelta(hours=5), minutes=60, queue_id=ALL, task="", succeeded=50)
    make_figure(hour, queue_id=ALL, task="", succeeded=2)

    assert read_overview("default", 24).counts.succeeded == 52
    assert read_overview("default", 168).counts.succeeded == 52


def test_rows_of_one_kind_are_not_counted_with_those_of_another():
    counted = Counts(succeeded=5, failed=1, run_seconds=10.0, runs=[6])
    for key in ((ALL, "", ""), (ALL, "task", ""), (7, "task", ""), (7, "task", "Error")):
        add_figures("default", {key: counted})

    overview = read_overview("default", 1)

    assert overview.counts.succeeded == 5
    assert [(task.task, task.counts.succeeded) for task in overview.tasks] == [("task", 5)]
    assert overview.counts.failing == pytest.approx(1 / 6)


def test_tasks_that_ran_longest_come_first():
    for name, seconds in (("short", 1.0), ("long", 100.0)):
        add_figures("default", {(ALL, name, ""): Counts(succeeded=4, run_seconds=seconds)})

    assert [task.task for task in read_overview("default", 1).tasks] == ["long", "short"]


def test_queues_are_listed_by_their_oldest_wait_when_jobs_are_ready():
    now = datetime.now(UTC)
    late, fresh, busy, _idle = (make_queue(f"tenant-{n}") for n in range(4))
    for queue, seconds in ((late, 500), (fresh, 5)):
        at = now - timedelta(seconds=seconds)
        make_job(queue, created_at=at, run_at=at)
    make_job(busy, state="running", worker_id=1, attempt=1, claim_seq=1, queued_at=now)

    lines = read_overview("default", 1).queues

    assert [line.queue.id for line in lines] == [late.pk, fresh.pk, busy.pk]
    assert [line.queue.active for line in lines] == [0, 0, 1]
    assert lines[0].queue.wait_seconds == pytest.approx(500, abs=60)
    assert lines[2].queue.wait_seconds is None
    assert [line.load.waiting for line in lines] == [1, 1, 0]


def test_failures_of_a_queue_are_those_of_its_own_jobs():
    queue, other = make_queue("acme"), make_queue("other")
    make_job(queue)
    make_job(other)
    add_figures("default", {(queue.pk, "task", ""): Counts(succeeded=3, failed=1)})
    add_figures("default", {(queue.pk, "task", "Error"): Counts(failed=1)})

    lines = {line.queue.id: line.counts.failing for line in read_overview("default", 1).queues}

    assert lines == {queue.pk: 0.25, other.pk: None}


def test_slots_are_those_of_queues_that_run(db):
    TenantQueue.objects.all().delete()
    make_queue("a", num_slots=3)
    make_queue("b", num_slots=4, paused=True)
    make_queue("c", num_slots=None)

    assert read_overview("default", 1).slots == 3


def test_list_is_bounded_when_many_queues_have_jobs(django_assert_max_num_queries):
    for n in range(LISTED + 5):
        make_jobs(make_queue(f"tenant-{n}"), 1)

    with django_assert_max_num_queries(20):
        assert len(read_overview("default", 1).queues) == LISTED
