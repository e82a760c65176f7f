"""max_waiting: a queue with so many ready jobs refuses more, where they are enqueued."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from django_tenantqueue.batch_sizes import REMEMBERED_SECONDS
from django_tenantqueue.calls.unique import Unique
from django_tenantqueue.exceptions import QueueFull, QueueRetired
from django_tenantqueue.models import Job, UniqueKey
from django_tenantqueue.operations import control, enqueue, max_waiting, queues
from django_tenantqueue.operations.max_waiting import LEAST_SECONDS
from tests.factories import Clock, make_jobs, make_queue
from tests.testapp.tasks import async_add, noop

acme = noop.using(tenant="acme")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Yield the clock by which counts grow old; other tests find no count of its time."""
    queues.forget_queues()
    turned = Clock()
    monkeypatch.setattr(max_waiting, "monotonic", turned)
    yield turned
    queues.forget_queues()


def enqueue_until_full(most: int = 20) -> int:
    for number in range(most):
        try:
            acme.delay()
        except QueueFull:
            return number
    return most


def test_queue_takes_as_many_as_may_wait_when_it_has_a_limit():
    make_queue("acme", max_waiting=3)

    assert enqueue_until_full() == 3
    assert Job.objects.count() == 3


def test_error_names_tenant_queue_limit_and_way_out_when_a_queue_is_full():
    make_queue("acme", max_waiting=0)

    with pytest.raises(
        QueueFull, match=r"'default' of tenant 'acme' .* max_waiting=0 .*Enqueue later, or raise"
    ) as caught:
        acme.delay()

    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.tenant, error.queue, error.max_waiting, error.count) == ("acme", "default", 0, 1)


def test_bulk_stores_nothing_when_there_is_no_room_for_all():
    make_queue("acme", max_waiting=5)
    acme.delay()

    with pytest.raises(QueueFull, match="with 5 more"):
        acme.enqueue_many([()] * 5)
    assert Job.objects.count() == 1

    assert len(acme.enqueue_many([()] * 4)) == 4


def test_bulk_stores_nothing_when_a_later_batch_has_no_room(monkeypatch):
    monkeypatch.setattr(enqueue, "BULK_ROWS", 10)
    make_queue("acme", max_waiting=25)

    with pytest.raises(QueueFull):
        acme.enqueue_many([()] * 30)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "options", [{"session": "s"}, {"limit_user": "u"}, {"run_at": timedelta(days=1)}]
)
def test_job_is_refused_when_it_would_wait_elsewhere(options):
    make_jobs(make_queue("acme", max_waiting=1), 1)

    with pytest.raises(QueueFull):
        acme.using(**options).delay()
    with pytest.raises(QueueFull):
        acme.using(**options).enqueue_many([()])
    assert Job.objects.count() == 1


@pytest.mark.parametrize("state", ["scheduled", "held", "queued", "running", "success"])
def test_job_does_not_count_when_it_is_not_ready(state):
    make_jobs(make_queue("acme", max_waiting=2), 5, state=state)

    assert enqueue_until_full() == 2


def test_jobs_of_all_priorities_count_when_a_queue_has_a_limit():
    queue = make_queue("acme", max_waiting=10)
    make_jobs(make_queue("other"), 20, priority=50)
    for priority in (100, 200, 300):
        make_jobs(queue, 3, priority=priority)

    assert enqueue_until_full() == 1


def test_coroutine_is_refused_when_it_is_enqueued_by_a_coroutine():
    make_queue("acme", max_waiting=1)
    job = async_to_sync(async_add.using(tenant="acme").adelay)(1, 2)

    with pytest.raises(QueueFull):
        async_to_sync(async_add.using(tenant="acme").adelay)(1, 2)
    assert Job.objects.get().pk == job.pk


def test_transaction_goes_on_when_a_job_is_refused():
    make_queue("acme", max_waiting=2)

    with transaction.atomic():
        assert enqueue_until_full() == 2
        make_queue("after")
        noop.using(tenant="after").delay()

    assert Job.objects.count() == 3


def test_queue_takes_more_when_jobs_were_claimed(worker, clock):
    make_queue("acme", max_waiting=3)
    enqueue_until_full()
    worker.claim(2)

    clock.now += LEAST_SECONDS

    assert enqueue_until_full() == 2


def test_retired_queue_says_so_when_it_had_a_limit():
    queue = make_queue("acme", max_waiting=3)
    acme.delay()
    control.tune_queue(queue.pk, retired=True)

    with pytest.raises(QueueRetired):
        acme.delay()


def test_queue_is_found_when_the_caller_cannot_see_it_yet(threads):
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM tenantqueue_tenantqueue")
        threads.run(lambda: make_queue("acme", max_waiting=3))
        acme.delay()
        acme.enqueue_many([()])

    assert Job.objects.count() == 2


# edits


def test_limit_holds_at_once_when_a_queue_is_given_one():
    job = acme.delay()
    control.tune_queue(job.queue_id, max_waiting=2)

    assert enqueue_until_full() == 1


@pytest.mark.parametrize(("limit", "more"), [(5, 2), (None, 20), (1, 0)])
def test_edit_takes_effect_within_a_second_when_a_limit_is_known(clock, limit, more):
    queue = make_queue("acme", max_waiting=3)
    assert enqueue_until_full() == 3
    control.tune_queue(queue.pk, max_waiting=limit)

    clock.now += REMEMBERED_SECONDS

    assert enqueue_until_full() == more


# cost


def test_nothing_more_is_asked_when_a_queue_has_no_limit(monkeypatch):
    make_queue("acme")
    acme.delay()
    asked: list[object] = []
    monkeypatch.setattr(enqueue, "take_room", lambda *args: asked.append(args))
    monkeypatch.setattr(enqueue.queries, "find_queues", lambda *args: asked.append(args))

    acme.delay()
    acme.enqueue_many([()] * 3)

    assert asked == []


def test_jobs_are_counted_once_when_many_are_enqueued_in_a_moment(monkeypatch):
    counts: list[int] = []
    count = max_waiting.count_waiting
    monkeypatch.setattr(
        max_waiting,
        "count_waiting",
        lambda using, queue: counts.append(queue) or count(using, queue),
    )
    make_queue("acme", max_waiting=10)

    assert enqueue_until_full() == 10
    with pytest.raises(QueueFull):
        acme.delay()

    assert len(counts) == 1


def test_count_is_remembered_for_a_second_when_it_took_long(monkeypatch, clock):
    counts: list[int] = []
    count = max_waiting.count_waiting

    def count_slowly(using: str, queue_id: int) -> tuple[int, int] | None:
        clock.now += 0.5
        counts.append(queue_id)
        return count(using, queue_id)

    monkeypatch.setattr(max_waiting, "count_waiting", count_slowly)
    make_queue("acme", max_waiting=10)

    acme.delay()
    clock.now += 0.99
    acme.delay()
    assert len(counts) == 1
    clock.now += 0.02
    acme.delay()
    assert len(counts) == 2


def test_overshoot_is_what_each_process_had_room_for_when_several_enqueue(monkeypatch):
    make_queue("acme", max_waiting=4)
    here: dict[tuple[str, int], object] = {}
    there: dict[tuple[str, int], object] = {}
    taken = 0
    for _ in range(10):
        for rooms in (here, there):
            monkeypatch.setattr(max_waiting, "_rooms", rooms)
            taken += enqueue_until_full(1)

    assert 4 <= taken <= 2 * 4


def test_duplicate_gets_its_job_when_the_queue_is_full():
    make_queue("acme", max_waiting=1)
    unique = acme.using(unique=Unique("until_executed"))
    first = unique.delay()

    again = unique.delay()

    assert (again.pk, again.duplicate) == (first.pk, True)


def test_unique_job_is_refused_when_the_queue_is_full():
    queue = make_queue("acme", max_waiting=1)
    make_jobs(queue, 1)

    with pytest.raises(QueueFull, match="max_waiting=1"):
        acme.using(unique=Unique("until_executed")).delay()

    assert Job.objects.count() == 1
    assert not UniqueKey.objects.exists()
