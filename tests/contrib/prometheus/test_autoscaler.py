"""A fleet that follows `tenantqueue_wanted_workers`: real claims, in a time that the test turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

import pytest

from django_tenantqueue.models import Job, Worker
from django_tenantqueue.queries.claim import ClaimedJob
from django_tenantqueue.queries.workers import delete_worker, heartbeat_worker
from django_tenantqueue.states import State
from tests.factories import FakeWorker, make_jobs, make_queue

from .test_collector import scrape

pytest.importorskip("prometheus_client")
pytestmark = pytest.mark.django_db(transaction=True)

LEAST, MOST, THREADS = 5, 60, 8
CALM = 3
"""Scrapes that must ask for fewer workers before the fleet shrinks."""


@dataclass
class Fleet:
    """Workers on one connection. All jobs take from one scrape to the next."""

    first: FakeWorker
    workers: list[tuple[FakeWorker, list[ClaimedJob]]] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def turn(self) -> None:
        """Scrape, scale, and let each worker end its jobs and claim others."""
        self.wanted.append(int(scrape()["tenantqueue_wanted_workers",]))
        self._scale(min(max(*self.wanted[-CALM:], LEAST), MOST))
        for worker, held in self.workers:
            worker.finish(held)
            held[:] = worker.claim_some(THREADS)
            heartbeat_worker(
                worker.db,
                worker.id,
                jobs_running=len(held),
                rss_bytes=None,
                claims_per_second=0.0,
                jobs_per_second=0.0,
                error=None,
            )

    def _scale(self, size: int) -> None:
        while len(self.workers) < size:
            self.workers.append((FakeWorker(db=self.first.db), []))
        for worker, held in self.workers[size:]:
            worker.give_back(held)
            delete_worker(worker.db, worker.id)
        del self.workers[size:]
        self.sizes.append(size)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    first = FakeWorker()
    delete_worker(first.db, first.id)
    yield Fleet(first)
    first.close()


def test_fleet_grows_works_off_the_backlog_and_shrinks(fleet: Fleet) -> None:
    capped, free = make_queue(num_slots=1), make_queue(num_slots=None)
    make_jobs(capped, 10_000)
    for _ in range(4):
        fleet.turn()
    assert fleet.sizes == [LEAST] * 4
    assert max(fleet.wanted) == 1  # for the one slot

    burst = make_jobs(free, 1200)
    while Job.objects.filter(pk__in=burst, final=False).exists():
        fleet.turn()

    # what runs, and what could start: of this, 1,000 are counted
    assert fleet.wanted[4:7] == [ceil(n / THREADS) for n in (1001, 1201, 1201 - MOST * THREADS)]
    assert fleet.sizes[4] == MOST
    assert len(fleet.sizes) - 4 <= 1200 / (MOST * THREADS) + 3
    for _ in range(CALM + 1):
        fleet.turn()
    assert fleet.sizes[-1] == Worker.objects.count() == LEAST
    assert set(Job.objects.filter(pk__in=burst).values_list("state", flat=True)) == {"success"}
    left = Job.objects.filter(queue=capped, state=State.READY).count()
    assert 10_000 - 25 < left < 10_000
