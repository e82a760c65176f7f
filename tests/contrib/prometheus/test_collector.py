"""What a scrape shows."""

from __future__ import annotations

import sys
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.contrib.prometheus import collector
from django_tenantqueue.contrib.prometheus.collector import registry
from django_tenantqueue.contrib.prometheus.families import FAMILIES
from django_tenantqueue.contrib.prometheus.serve import render
from django_tenantqueue.contrib.prometheus.totals import buckets
from django_tenantqueue.exceptions import Unsupported
from django_tenantqueue.histogram import BOUNDS
from django_tenantqueue.models import Figure, Job, QueueRate
from django_tenantqueue.models.worker import Role
from django_tenantqueue.operations import maintain
from django_tenantqueue.states import State
from tests.factories import make_figure, make_job, make_queue, make_worker

pytest.importorskip("prometheus_client")
pytestmark = pytest.mark.django_db


def scrape() -> dict[tuple[str, ...], float]:
    """Return the values by (name, *labels)."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in registry("default").collect()
        for sample in metric.samples
    }


def test_every_metric_is_there_when_jobs_have_run():
    maintain.thin_figures("default")
    queue = make_queue()
    make_job(queue)
    for name in ("", "a"):
        make_figure(task=name, started=1, runs=[1], waits=[1])

    names = {key[0] for key in scrape()}

    assert names == {name for family in FAMILIES for name in family.samples}


def test_labels_are_those_of_the_families():
    maintain.thin_figures("default")
    make_job(make_queue())
    make_figure(task="", started=1)
    labels = {family.name: set(family.labels) for family in FAMILIES}

    for metric in registry("default").collect():
        for sample in metric.samples:
            assert set(sample.labels) - {"le"} == labels[metric.name]


def test_jobs_are_told_by_what_blocks_them_when_more_workers_would_not_start_them():
    paused, full, slow, free = (
        make_queue(paused=True),
        make_queue(num_slots=1),
        make_queue(max_per_second=0.001, burst=1),
        make_queue(num_slots=2),
    )
    for queue, jobs in ((paused, 3), (full, 4), (slow, 5), (free, 6)):
        for _ in range(jobs):
            make_job(queue)
    make_job(full, state=State.RUNNING)

    QueueRate.objects.create(queue_id=slow.pk, debt=1.0, as_of=timezone.now())

    found = scrape()

    blocked = [found["tenantqueue_blocked_jobs", why] for why in ("paused", "slots", "rate")]
    assert blocked == [3, 4, 5]
    queues = [found["tenantqueue_blocked_queues", why] for why in ("paused", "slots", "rate")]
    assert queues == [1, 1, 1]
    assert found["tenantqueue_startable_jobs",] == 2
    assert found["tenantqueue_jobs", "ready"] == 18
    assert found["tenantqueue_jobs", "running"] == 1
    assert found["tenantqueue_slots",] == 1 + 2 + 5


def test_capped_jobs_ask_for_no_worker():
    queue = make_queue(num_slots=1)
    make_job(queue, state=State.RUNNING)
    for _ in range(50):
        make_job(queue)

    found = scrape()

    assert found["tenantqueue_blocked_jobs", "slots"] == 50
    assert (found["tenantqueue_wanted_threads",], found["tenantqueue_wanted_workers",]) == (0, 0)


def test_workers_are_wanted_when_jobs_could_start():
    queue = make_queue(num_slots=None)
    for _ in range(17):
        make_job(queue)
    assert scrape()["tenantqueue_wanted_workers",] == 3  # of 8 threads

    make_worker(threads=4)

    found = scrape()
    assert found["tenantqueue_wanted_threads",] == 17
    assert found["tenantqueue_wanted_workers",] == 5
    assert found["tenantqueue_worker_threads",] == 4


def scans_of_the_history() -> int:
    """Return how often this session has read partitions with finished jobs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(seq_scan + coalesce(idx_scan, 0)) FROM pg_stat_xact_user_tables "
            "WHERE relname LIKE 'tenantqueue_job_history%'"
        )
        return int(cursor.fetchone()[0])


def test_no_finished_job_is_read_by_a_scrape():
    queue = make_queue()
    make_job(queue)
    make_job(queue, state=State.SUCCESS)
    assert Job.objects.filter(final=True).count() == 1
    before = scans_of_the_history()
    assert before

    scrape()

    assert scans_of_the_history() == before


def test_queues_are_named_when_their_jobs_wait_longest(monkeypatch):
    monkeypatch.setattr("django_tenantqueue.contrib.prometheus.reads.LISTED", 2)
    now = timezone.now()
    for hours in (1, 3, 2):
        at = now - timedelta(hours=hours)
        make_job(make_queue(f"t{hours}", num_slots=7), created_at=at, run_at=at)

    found = scrape()

    named = {key[1:] for key in found if key[0] == "tenantqueue_queue_wait_seconds"}
    assert named == {("t3", "default"), ("t2", "default")}
    assert 10_800 <= found["tenantqueue_oldest_wait_seconds",] < 10_900
    assert found["tenantqueue_queue_slots", "t3", "default"] == 7
    assert found["tenantqueue_queue_waiting_jobs", "t3", "default"] == 1


def test_counters_and_histograms_are_those_of_the_totals():
    maintain.thin_figures("default")
    make_figure(task="")
    make_figure(task="a")
    maintain.thin_figures("default")

    Figure.objects.filter(queue_id=0).update(
        started=9, succeeded=4, failed=2, retried=2, cancelled=1, run_seconds=0.5, runs=[1, 2, 6]
    )

    found = scrape()

    assert found["tenantqueue_jobs_started_total", "a"] == 9
    assert found["tenantqueue_jobs_started_total", "other"] == 0
    states = ("success", "error", "cancelled")
    assert [found["tenantqueue_jobs_finished_total", "a", s] for s in states] == [4, 2, 1]
    assert found["tenantqueue_jobs_failed_total", "a"] == 2
    assert found["tenantqueue_jobs_retried_total", "a"] == 2
    assert found["tenantqueue_run_seconds_bucket", "a", "0.001"] == 1
    assert found["tenantqueue_run_seconds_bucket", "a", "0.002"] == 3
    assert found["tenantqueue_run_seconds_bucket", "a", "+Inf"] == 9
    assert found["tenantqueue_run_seconds_count", "a"] == 9
    assert found["tenantqueue_run_seconds_sum", "a"] == 0.5


def test_series_stay_apart_when_a_task_is_named_other():
    maintain.thin_figures("default")
    for name in ("", "other"):
        make_figure(task=name, started=1)
    maintain.thin_figures("default")

    tasks = [key[1] for key in scrape() if key[0] == "tenantqueue_jobs_started_total"]

    assert sorted(tasks) == ["'other'", "other"]


def test_names_are_escaped_when_they_are_hostile():
    tenant = 'a"} 9\n\\ {b="'
    make_job(make_queue(tenant))

    body, _ = render(registry("default"), "")

    (line,) = [
        line
        for line in body.decode().splitlines()
        if line.startswith("tenantqueue_queue_waiting_jobs{")
    ]
    escaped = tenant.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert f'tenant="{escaped}"' in line
    assert line.endswith("} 1.0")


def test_counters_are_left_out_when_figures_are_off(settings):
    maintain.thin_figures("default")
    settings.TENANTQUEUE = {"FIGURES": False}

    assert not [key for key in scrape() if key[0] == "tenantqueue_jobs_started_total"]


def test_buckets_are_cumulated_when_durations_are_long():
    found = buckets([0] * len(BOUNDS) + [5])

    assert len(found) == len(BOUNDS) + 1
    assert found[-2:] == [(str(BOUNDS[-1]), 0.0), ("+Inf", 5.0)]
    assert len({bound for bound, _ in found}) == len(found)


def test_error_names_the_extra_when_the_client_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(Unsupported, match=r"django-tenantqueue\[prometheus\]"):
        collector.client()


def test_scrape_reads_the_workers_once():
    make_worker()
    make_job(make_queue())

    with CaptureQueriesContext(connection) as captured:
        scrape()

    read = [query["sql"] for query in captured if 'FROM "tenantqueue_worker"' in query["sql"]]
    assert len(read) == 1


def test_scrape_counts_no_dispatcher_among_the_workers():
    make_worker(role=Role.DISPATCHER, executor="celery")
    make_worker(draining=True)

    found = scrape()

    states = {key[1]: value for key, value in found.items() if key[0] == "tenantqueue_workers"}
    assert states["draining"] == 1
    assert sum(states.values()) == 1
