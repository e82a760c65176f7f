"""The tenants and their jobs."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

from django.db import connections

from django_tenantqueue.models import TenantQueue

from .plan import Plan, Zipf, poisson
from .tasks import news, work

TICK_SECONDS = 0.05
ENQUEUERS = 2
NEWS_SHARE = 0.2
"""Part of the jobs that are of the new task, from the second deploy on."""


@dataclass(frozen=True, slots=True)
class Tenants:
    """The ranks of the tenants that have a load, and the names of the others."""

    ranks: Zipf
    blocked: list[str]
    """Those of the others that have a backlog."""
    limited: list[str]
    """Tenants with one slot, for the phase after the day."""


def make_tenants(plan: Plan, chance: random.Random) -> Tenants:
    """Make all queues, in an order that has nothing to do with the load."""
    count = round(plan.tenants * plan.blocked)
    loaded = plan.tenants - count
    queues = [
        TenantQueue(tenant=f"t{rank}", num_slots=plan.slots(rank)) for rank in range(1, loaded + 1)
    ]
    blocked = [f"blocked-{number}" for number in range(count)]
    queues += [
        TenantQueue(tenant=name, **({"paused": True} if number % 2 else {"num_slots": 0}))
        for number, name in enumerate(blocked)
    ]
    # their long jobs keep a quarter of the smallest fleet busy
    limited = [f"limited-{number}" for number in range(plan.least_pods * plan.pod_workers // 4)]
    queues += [TenantQueue(tenant=name, num_slots=1) for name in limited]
    queues.append(TenantQueue(tenant="burst", num_slots=None))
    queues.append(TenantQueue(tenant="limited-burst", num_slots=20))
    chance.shuffle(queues)
    TenantQueue.objects.bulk_create(queues, batch_size=2000)
    return Tenants(Zipf(loaded), blocked[: plan.backlogged], limited)


@dataclass(slots=True)
class Load:
    """Enqueues jobs in threads, as the sites of a project do."""

    plan: Plan
    tenants: Tenants
    ids: set[int] = field(default_factory=set)
    """All jobs that were enqueued."""
    knows_news: bool = False
    """The sites have the code of the second deploy."""
    error: BaseException | None = None
    _began: float = 0.0
    _threads: list[threading.Thread] = field(default_factory=list)

    def put(self, tenant: str, durations: list[float], *, is_small: bool = False) -> None:
        """Enqueue jobs of one tenant at once."""
        calls = [(seconds, is_small) for seconds in durations]
        self.ids.update(work.using(tenant=tenant).enqueue_many(calls))

    def begin(self) -> None:
        """Begin the day."""
        self._began = time.monotonic()
        for number in range(ENQUEUERS):
            self._threads.append(
                threading.Thread(target=self._run, args=(number,), name=f"site-{number}")
            )
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait until the day is over."""
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        plan, chance = self.plan, random.Random(plan_seed(self.plan, number))
        at = 0.0
        try:
            while at < plan.day_seconds and self.error is None:
                for _ in range(poisson(plan.rate(at) * TICK_SECONDS / ENQUEUERS, chance)):
                    self._put_one(chance)
                at += TICK_SECONDS
                time.sleep(max(0.0, self._began + at - time.monotonic()))
        except BaseException as error:  # noqa: BLE001 the main thread raises it
            self.error = error
        finally:
            connections.close_all()

    def _put_one(self, chance: random.Random) -> None:
        rank = self.tenants.ranks.draw(chance)
        is_small = rank > self.plan.large
        task = news if self.knows_news and chance.random() < NEWS_SHARE else work
        job = task.using(tenant=f"t{rank}").delay(self.plan.duration(chance), is_small)
        self.ids.add(job.pk)


def plan_seed(plan: Plan, number: int) -> int:
    """Return a seed for each thread."""
    return plan.seed * 100 + number
