"""Requests reports like the airlines' users and nightly schedules."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import transaction

from django_tenantqueue import Priority, State, Task
from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.reports import read_loads
from django_tenantqueue.tasks import BoundTask

from . import logbooks, tasks
from .audit import Note
from .models import Airline, Batch, BatchJob

CREATED_BY = "seeder"
BACKLOG = 60
"""Maximum of waiting reports of a queue, so that a demo can run for days."""
BURST_SECONDS = 15.0
FLEET_SECONDS = 40.0
"""Interval at which an airline requests its logbooks."""


@dataclass(frozen=True, slots=True)
class Request:
    """A report with its arguments, and the expected end and runs of its job."""

    task: Task[..., Any]
    arguments: dict[str, Any]
    state: str = State.SUCCESS
    runs: int = 1


@dataclass(slots=True)
class Ledger:
    """The seeder's own count of what it has requested."""

    notes: list[Note] = field(default_factory=list)

    def add(self, job_id: int, airline: str, request: Request) -> None:
        """Note a request and the id of its job."""
        self.notes.append(
            Note(
                job_id=job_id,
                airline=airline,
                queue=str(request.task.options.queue),
                state=request.state,
                runs=request.runs,
            )
        )

    def save(self) -> Batch:
        """Write the notes to the database."""
        with transaction.atomic():
            batch = Batch.objects.create(job_count=len(self.notes))
            BatchJob.objects.bulk_create(
                BatchJob(
                    batch=batch,
                    job_id=note.job_id,
                    airline=note.airline,
                    queue=note.queue,
                    state=note.state,
                    runs=note.runs,
                )
                for note in self.notes
            )
        return batch


def _month(chance: random.Random) -> int | None:
    return chance.choice([None, *range(1, 13)])


# Each kind of request with its share of 100.
KINDS: Sequence[tuple[int, Callable[[random.Random], Request]]] = (
    (20, lambda c: Request(tasks.route_delays, {"month": _month(c)})),
    (
        4,
        lambda c: Request(tasks.route_delays, {"airport": c.choice(["LAX", "ORD", "ATL", "BOS"])}),
    ),
    # A mistyped airport: the report fails for good in its first run.
    (
        4,
        lambda c: Request(
            tasks.route_delays, {"airport": c.choice(["LAZ", "XXX", "N.Y"])}, State.ERROR
        ),
    ),
    (14, lambda c: Request(tasks.punctuality, {"tolerance": c.choice([5, 15, 30])})),
    (14, lambda c: Request(tasks.worst_days, {"days": c.choice([10, 20, 50])})),
    (
        12,
        lambda c: Request(
            tasks.weather_delays, {"measure": c.choice(["wind", "visibility", "rain"])}
        ),
    ),
    (9, lambda c: Request(tasks.airport_ranking, {})),
    (8, lambda c: Request(tasks.fleet_age, {})),
    (4, lambda c: Request(tasks.carbon_cost, {})),
    # The price service is down: once, twice, for ever.
    (4, lambda c: Request(tasks.carbon_cost, {"outages": 1}, runs=2)),
    (2, lambda c: Request(tasks.carbon_cost, {"outages": 2}, runs=3)),
    (1, lambda c: Request(tasks.carbon_cost, {"outages": 9}, State.ERROR, runs=4)),
    (3, lambda c: Request(tasks.knock_on, {})),
    (1, lambda c: Request(tasks.knock_on, {"hours": 72, "everyone": True})),
)
# Requests of a schedule, in a row.
SERIES: Sequence[tuple[Task[..., Any], list[dict[str, Any]]]] = (
    (tasks.route_delays, [{"month": month} for month in range(1, 13)]),
    (tasks.punctuality, [{"tolerance": minutes} for minutes in (0, 5, 10, 15, 30, 60)]),
    (tasks.weather_delays, [{"measure": name} for name in ("wind", "visibility", "rain")]),
)
# The requester: a waiting user, an analyst, an administrator, the nightly schedule.
PRIORITIES = (
    (30, Priority.USER_HIGH),
    (40, Priority.USER),
    (5, Priority.ADMIN),
    (25, Priority.SYSTEM_LOW),
)


def requests(chance: random.Random) -> Iterator[Request]:
    """Yield requests for ever; of each hundred, every kind as often as KINDS says."""
    while True:
        deck = [make for share, make in KINDS for _ in range(share)]
        chance.shuffle(deck)
        for make in deck:
            yield make(chance)


def _priority(chance: random.Random) -> int:
    return chance.choices([p for _, p in PRIORITIES], [share for share, _ in PRIORITIES])[0]


def _bound(request: Request, airline: str, priority: int, **options: Any) -> BoundTask[...]:
    # Heavy reports keep their low priority.
    if request.task is tasks.knock_on:
        priority = max(priority, Priority.USER_LOW)
    return request.task.using(tenant=airline, priority=priority, created_by=CREATED_BY, **options)


def _airlines(chance: random.Random, count: int) -> list[str]:
    """Return `count` airlines: each in turn for a third, the others by their size."""
    found = list(Airline.objects.order_by("code"))
    codes = [airline.code for airline in found]
    even = [codes[n % len(codes)] for n in range(max(min(count, len(codes)), count // 3))]
    weights = [max(1.0, airline.flight_count**0.5) for airline in found]
    chosen = even + chance.choices(codes, weights, k=count - len(even))
    chance.shuffle(chosen)
    return chosen


def seed_batch(count: int, seed: int | None = None) -> Ledger:
    """Request `count` reports for all airlines at once and return the notes on them."""
    chance = random.Random(seed)
    ledger = Ledger()
    nightly: dict[tuple[str, str], list[Request]] = defaultdict(list)
    for airline, request in zip(_airlines(chance, count), requests(chance), strict=False):
        priority = _priority(chance)
        if priority == Priority.SYSTEM_LOW:
            nightly[airline, request.task.name].append(request)
            continue
        options = {}
        if chance.random() < 0.05:
            options["run_at"] = timedelta(seconds=chance.uniform(0.5, 3))
        job: Job = _bound(request, airline, priority, **options).delay(**request.arguments)
        ledger.add(job.pk, airline, request)
    for (airline, _), group in nightly.items():
        bound = _bound(group[0], airline, Priority.SYSTEM_LOW)
        ids = bound.enqueue_many([request.arguments for request in group])
        for job_id, request in zip(ids, group, strict=True):
            ledger.add(job_id, airline, request)
    return ledger


def keep_seeding(rate: float, is_over: Callable[[], bool]) -> int:
    """Request about `rate` reports a second until `is_over()`; return how many."""
    chance = random.Random()
    made = 0
    stream = requests(chance)
    burst_at = time.monotonic() + BURST_SECONDS / 4
    fleet_at = next_at = time.monotonic()
    while not is_over():
        now = time.monotonic()
        if now >= burst_at:
            burst_at = now + chance.uniform(0.5, 1.5) * BURST_SECONDS
            made += _burst(chance, max(1, round(rate / 2 * BURST_SECONDS)))
        if now >= fleet_at:
            fleet_at = now + FLEET_SECONDS
            made += _fleet(chance)
        if now >= next_at:
            # Half of the reports come in bursts, half one by one.
            next_at = now + chance.expovariate(rate / 2)
            made += _single(chance, next(stream))
        time.sleep(max(0.0, min(0.2, next_at - time.monotonic())))
    return made


def _has_room(airline: str, queue: str) -> bool:
    ids = list(
        TenantQueue.objects.filter(tenant=airline, name=queue, retired=False).values_list(
            "pk", flat=True
        )
    )
    return all(load.waiting < BACKLOG for load in read_loads(ids).values()) and bool(ids)


def _single(chance: random.Random, request: Request) -> int:
    (airline,) = _airlines_by_size(chance, 1)
    if not _has_room(airline, str(request.task.options.queue)):
        return 0
    _bound(request, airline, _priority(chance)).delay(**request.arguments)
    return 1


def _burst(chance: random.Random, count: int) -> int:
    """Let one airline's schedule ask for many reports of one kind."""
    (airline,) = _airlines_by_size(chance, 1)
    report, parameters = chance.choice(SERIES)
    request = Request(report, {})
    if not _has_room(airline, str(request.task.options.queue)):
        return 0
    bound = _bound(request, airline, Priority.SYSTEM_LOW, labels=["nightly"])
    return len(bound.enqueue_many([parameters[n % len(parameters)] for n in range(count)]))


def _fleet(chance: random.Random) -> int:
    """Have one airline's logbooks written, unless they are being written."""
    (code,) = _airlines_by_size(chance, 1)
    if logbooks.are_being_written(code):
        return 0
    monitor = logbooks.write_logbooks(Airline.objects.get(pk=code), CREATED_BY)
    return monitor.details().count()


def _airlines_by_size(chance: random.Random, count: int) -> list[str]:
    found = list(Airline.objects.values_list("code", "flight_count"))
    return chance.choices(
        [code for code, _ in found], [max(1.0, n**0.5) for _, n in found], k=count
    )
