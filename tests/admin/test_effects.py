"""What an operator saves is read by the next claim, and wakes a worker that sleeps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from django_tenantqueue.models import Worker
from tests.factories import FakeWorker, make_job, make_jobs, make_queue

from .conftest import url_of
from .forms import form_values
from .test_queues import LIST, save, show

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker() -> Iterator[FakeWorker]:
    worker = FakeWorker()
    yield worker
    worker.close()


def claimed(worker: FakeWorker, room: int = 10) -> list[int]:
    """Return the ids of what a worker claims next, whatever it knew to be full."""
    worker.claimer.places.forget_blocked()
    return [job.id for job in worker.claim(room)]


def test_slots_raised_in_the_list_are_used_by_the_next_claim(
    admin_client: Client, worker: FakeWorker
) -> None:
    queue = make_queue(num_slots=1)
    make_jobs(queue, 5)
    assert len(claimed(worker)) == 1
    assert claimed(worker) == []

    save(admin_client, show(admin_client), **{"form-0-num_slots": "3"})

    assert len(claimed(worker)) == 2


def test_pause_in_the_list_stops_the_next_claim(admin_client: Client, worker: FakeWorker) -> None:
    make_jobs(make_queue(), 5)

    save(admin_client, show(admin_client), **{"form-0-paused": "on"})

    assert claimed(worker) == []


def test_priority_set_on_the_page_is_served_first(admin_client: Client, worker: FakeWorker) -> None:
    queue = make_queue()
    first, urgent = make_job(queue), make_job(queue)
    address = url_of("job", "change", urgent.pk)
    values = form_values(admin_client.get(address), "priority")

    admin_client.post(address, {**values, "priority": "120", "_tune": "1"})

    assert claimed(worker, 1) == [urgent.pk]
    assert claimed(worker, 1) == [first.pk]


@pytest.mark.parametrize("edit", [{"form-0-num_slots": "9"}, {"form-0-paused": None}])
def test_a_sleeping_worker_is_woken(
    admin_client: Client, worker: FakeWorker, edit: dict[str, str | None]
) -> None:
    make_queue(paused=True)
    asleep = Worker.objects.filter(pk=worker.id, sleeping_until__isnull=False)
    Worker.objects.filter(pk=worker.id).update(sleeping_until=timezone.now() + timedelta(hours=1))
    assert asleep.exists()

    save(admin_client, show(admin_client), LIST, **edit)

    assert not asleep.exists()
