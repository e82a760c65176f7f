"""History partitions come and go while everybody works."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, date, datetime

import psycopg
import pytest
from django.db import connection, transaction
from django.test import override_settings

from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.operations import history, maintain
from django_tenantqueue.operations.monitor_control import cancel_monitor
from tests.factories import make_job, make_jobs, make_queue, state_of
from tests.tables import empty_tables
from tests.testapp.tasks import noop

FAR = date(2071, 5, 1)
FAR_LEAVES = [f"tenantqueue_job_history_2071m0{month}" for month in (5, 6, 7, 8)]
LONG_AGO = date(2001, 1, 1)


@pytest.fixture(autouse=True)
def restored_history(transactional_db):
    before = {leaf.name for leaf in history.list_leaves("default")}
    yield
    empty_tables()
    for leaf in history.list_leaves("default"):
        if leaf.name not in before:
            history.drop_leaf("default", leaf)
    maintain.make_history("default")
    # Months that tests elsewhere have made may be gone: those past their keep are dropped.
    assert {leaf.name for leaf in history.list_leaves("default")} <= before


def today() -> date:
    return datetime.now(UTC).date()


def leaf_of(job_id: int) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tableoid::regclass::text FROM tenantqueue_job WHERE id = %s", [job_id]
        )
        ((name,),) = cursor.fetchall()
    return name


def names() -> list[str]:
    return [leaf.name for leaf in history.list_leaves("default")]


def leaf_at(month: date) -> history.Leaf:
    (found,) = [leaf for leaf in history.list_leaves("default") if leaf.month == month]
    return found


def test_coming_months_are_made_when_they_are_missing():
    assert maintain.make_history("default", FAR) == FAR_LEAVES
    assert maintain.make_history("default", FAR) == []


def test_leaves_are_attached_to_the_indexes_when_they_are_made():
    maintain.make_history("default", FAR)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_index WHERE indrelid = %s::regclass AND indisvalid",
            [FAR_LEAVES[0]],
        )
        made = cursor.fetchone()
        cursor.execute(
            "SELECT count(*) FROM pg_index WHERE indrelid = "
            "'tenantqueue_job_history_default'::regclass"
        )
        assert made == cursor.fetchone()


def test_old_months_are_dropped_when_they_are_past_their_keep():
    history.make_leaf("default", LONG_AGO)
    history.make_leaf("default", date(2071, 4, 1))
    maintain.make_history("default", FAR)
    kept = [name for name in names() if name > "tenantqueue_job_history_2071m03"]

    with override_settings(TENANTQUEUE={"HISTORY_KEEP_MONTHS": 1}):
        dropped = maintain.drop_history("default", FAR)

    assert history.leaf_name(LONG_AGO) in dropped
    assert names() == kept


def test_nothing_is_dropped_when_history_is_kept_for_ever():
    history.make_leaf("default", LONG_AGO)

    with override_settings(TENANTQUEUE={"HISTORY_KEEP_MONTHS": None}):
        assert maintain.drop_history("default", FAR) == []


def test_leaves_are_made_when_an_enqueue_a_finish_and_a_reader_are_open(
    worker, open_connection, threads
):
    make_jobs(make_queue(), 2)
    jobs = worker.claim()
    reader = open_connection()
    with transaction.atomic(), worker.db.transaction(), reader.transaction():
        noop.using(tenant="acme").delay()
        worker.finish_inside(jobs[:1])
        reader.execute(f"SELECT FROM tenantqueue_job_history WHERE finished_at = '{today()}'")
        reader.execute("SELECT FROM tenantqueue_job_hot")

        assert threads.run(maintain.make_history, "default", FAR) == FAR_LEAVES


def test_leaves_are_made_later_when_somebody_reads_the_whole_history(open_connection, threads):
    reader = open_connection()
    with reader.transaction():
        reader.execute("SELECT count(*) FROM tenantqueue_job_history")

        assert threads.run(maintain.make_history, "default", FAR) == []

    assert maintain.make_history("default", FAR) == FAR_LEAVES


def test_old_leaf_is_dropped_when_an_enqueue_is_open(threads):
    history.make_leaf("default", LONG_AGO)
    with transaction.atomic():
        noop.using(tenant="acme").delay()

        with override_settings(TENANTQUEUE={"HISTORY_KEEP_MONTHS": 60}):
            assert threads.run(maintain.drop_history, "default") == [history.leaf_name(LONG_AGO)]


def test_old_leaf_is_emptied_now_and_dropped_later_when_a_finish_is_open(worker, threads):
    history.make_leaf("default", LONG_AGO)
    make_job(state="success", finished_at=datetime(2001, 1, 15, tzinfo=UTC))
    make_job()
    jobs = worker.claim()
    with override_settings(TENANTQUEUE={"HISTORY_KEEP_MONTHS": 60}):
        with worker.db.transaction():
            worker.finish_inside(jobs)
            assert threads.run(maintain.drop_history, "default") == []
            assert not Job.objects.filter(finished_at__year=2001).exists()

        assert maintain.drop_history("default") == [history.leaf_name(LONG_AGO)]


def test_nothing_is_dropped_now_when_somebody_reads_the_whole_history(open_connection, threads):
    history.make_leaf("default", LONG_AGO)
    job = make_job(state="success", finished_at=datetime(2001, 1, 15, tzinfo=UTC))
    reader = open_connection()
    with override_settings(TENANTQUEUE={"HISTORY_KEEP_MONTHS": 60}):
        with reader.transaction():
            reader.execute("SELECT count(*) FROM tenantqueue_job_history")
            assert threads.run(maintain.drop_history, "default") == []
            assert Job.objects.filter(pk=job.pk).exists()

        assert maintain.drop_history("default") == [history.leaf_name(LONG_AGO)]


def test_finishes_do_not_time_out_when_leaves_are_to_be_dropped_behind_a_reader(
    worker, open_connection, threads
):
    """A worker waits 200 ms for a lock at most; maintenance gives up after 50 ms."""
    history.make_leaf("default", LONG_AGO)
    make_jobs(make_queue(num_slots=100), 30)
    jobs = worker.claim(30)
    reader = open_connection()
    tries = threading.Event()

    def drop():
        for _ in range(3):
            tries.set()
            try:
                history.drop_leaf("default", leaf_at(LONG_AGO))
            except psycopg.errors.LockNotAvailable:
                continue
            return "dropped"
        return "given up"

    with reader.transaction():
        reader.execute("SELECT count(*) FROM tenantqueue_job_history")
        dropping = threads.start(drop)
        assert tries.wait(20)
        for job in jobs:
            assert worker.finish([job]) == {job.id}
        assert dropping.result(20) == "given up"


def test_stopped_monitor_stays_stopped_when_the_month_of_its_failures_is_old():
    monitor = ConcurrentJobMonitor.objects.start(
        "work", [noop.call()], parallel=0, priority=1, tenant="a", stop_after_failures=2
    )
    history.make_leaf("default", LONG_AGO)
    ended = datetime(2001, 1, 15, tzinfo=UTC)
    for _ in range(2):
        make_job(state="error", finished_at=ended, monitor_id=monitor.pk)

    with override_settings(TENANTQUEUE={"HISTORY_KEEP_MONTHS": 60}):
        assert maintain.drop_history("default") == []
        cancel_monitor(monitor.pk)
        assert maintain.drop_history("default") == [history.leaf_name(LONG_AGO)]


def test_finish_works_when_its_month_has_no_leaf(worker):
    month = today().replace(day=1)
    history.drop_leaf("default", leaf_at(month))
    job_id = make_job().pk

    worker.finish(worker.claim())

    assert leaf_of(job_id) == "tenantqueue_job_history_default"
    assert state_of(job_id) == "success"


def test_stray_rows_move_when_their_month_is_made(worker):
    month = today().replace(day=1)
    history.drop_leaf("default", leaf_at(month))
    strays = [make_job().pk for _ in range(3)]
    worker.finish(worker.claim())
    other = make_job(state="error", finished_at=datetime(2001, 1, 15, tzinfo=UTC)).pk

    made = maintain.make_history("default")

    assert made == [history.leaf_name(month), history.leaf_name(LONG_AGO)]
    assert {leaf_of(job_id) for job_id in strays} == {history.leaf_name(month)}
    assert leaf_of(other) == history.leaf_name(LONG_AGO)
    assert Job.objects.count() == 4


@override_settings(TENANTQUEUE={"HISTORY_KEEP_MONTHS": 1})
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_both_succeed_when_two_make_and_drop_the_same_leaves_at_once(threads, isolation):
    """The catalogue has several errors for it, each of an instant of its own: many tries."""
    together = threading.Barrier(2)

    def make_and_drop():
        made, dropped = Counter[str](), Counter[str]()
        with connection.cursor() as cursor:
            cursor.execute(f"SET default_transaction_isolation = '{isolation}'")
        try:
            for _ in range(10):
                together.wait(20)
                made.update(maintain.make_history("default", FAR))
                together.wait(20)
                dropped.update(maintain.drop_history("default", date(2071, 10, 1)))
        except BaseException:
            together.abort()
            raise
        return made, dropped

    first, second = (t.result(60) for t in [threads.start(make_and_drop) for _ in range(2)])
    left = Counter(names())

    assert (first[0] + second[0]) - (first[1] + second[1]) <= left
    assert sum((first[0] + second[0]).values()) > len(FAR_LEAVES)
    assert maintain.make_history("default", FAR) == [n for n in FAR_LEAVES if n not in left]


def test_tables_that_are_not_ours_are_left_alone_when_they_are_attached():
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE tenantqueue_job_history_archive (LIKE tenantqueue_job_history "
            "INCLUDING CONSTRAINTS)"
        )
        cursor.execute(
            "ALTER TABLE tenantqueue_job_history ATTACH PARTITION "
            "tenantqueue_job_history_archive FOR VALUES FROM ('1990-01-01') TO ('1991-01-01')"
        )
        try:
            with override_settings(TENANTQUEUE={"HISTORY_KEEP_MONTHS": 60}):
                assert maintain.drop_history("default") == []
        finally:
            cursor.execute("DROP TABLE tenantqueue_job_history_archive")
