"""What is wrong with tenant queues at the moment: for the queues of a page, and to filter by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import TextChoices
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ..models import TenantQueue
from ..queries.control import QueueLoad
from ..queries.figures import Counts, sum_failures_by_queue, sum_of_queues
from ..queries.fleet import BusyQueue, HeldJobs, list_held
from ..queries.lists import read_in_order
from .busy_queues import Busy
from .display_limits import READ, VISITED
from .held import is_late, read_held_of
from .queue_loads import loads
from .served_queues import Takers, read_takers
from .thresholds import FAILED_WITHIN, LATE_SECONDS


class Trouble(TextChoices):
    """What keeps the jobs of a queue waiting, or makes them fail."""

    LATE = "late", _("late")
    FULL = "full", _("full")
    FAILING = "failing", _("failing")
    PAUSED = "paused", _("paused")
    NO_SLOTS = "no-slots", _("no slots")
    NO_WORKER = "no-worker", _("no worker")
    HELD = "held", _("held")


@dataclass(frozen=True, slots=True)
class QueueNow:
    """Jobs of a queue at the moment, and what happened to its jobs in the last hour."""

    load: QueueLoad
    counts: Counts
    held: Sequence[HeldJobs] = field(default=())
    troubles: Sequence[Trouble] = field(default=())


@dataclass(frozen=True, slots=True)
class Found:
    """Ids of queues. `capped`: there may be more than were looked at."""

    ids: Sequence[int]
    capped: bool


def read_now(using: str, queues: Iterable[TenantQueue]) -> dict[int, QueueNow]:
    """Return how each of a page's queues is: four statements and those of their plans."""
    rows = list(queues)
    if not rows:
        return {}
    ids = [row.pk for row in rows]
    held: dict[int, list[HeldJobs]] = {pk: [] for pk in ids}
    with read_in_order(using):
        counted = loads(using, ids)
        for one in read_held_of(using, ids):
            held[one.queue_id].append(one)
    figures = sum_of_queues(using, ids, since=timezone.now() - FAILED_WITHIN)
    takers = read_takers(using)
    found = {}
    for row in rows:
        load, counts = counted[row.pk], figures.get(row.pk, Counts())
        troubles = troubles_of(row, load, counts, takers, held[row.pk])
        found[row.pk] = QueueNow(load, counts, held[row.pk], troubles)
    return found


def troubles_of(
    queue: TenantQueue,
    load: QueueLoad,
    counts: Counts,
    takers: Takers,
    held: Sequence[HeldJobs],
) -> list[Trouble]:
    """Return what is wrong with a queue."""
    is_wrong = {
        Trouble.PAUSED: queue.paused,
        Trouble.NO_SLOTS: queue.num_slots == 0,
        Trouble.NO_WORKER: load.waiting > 0 and not takers.serve(queue),
        Trouble.LATE: (load.wait_seconds or 0) > LATE_SECONDS,
        Trouble.FULL: is_full(queue.num_slots, load.running) and load.waiting > 0,
        Trouble.FAILING: counts.failed > 0,
        Trouble.HELD: any(map(is_late, held)),
    }
    return [trouble for trouble, wrong in is_wrong.items() if wrong]


def failing_queues(using: str) -> Found:
    """Return the queues whose jobs ended in error in the last hour."""
    with read_in_order(using):
        found = sum_failures_by_queue(using, since=timezone.now() - FAILED_WITHIN, visits=READ)
    ids = [queue.queue_id for queue in found if queue.failed]
    return Found(ids, any(queue.capped for queue in found))


def held_queues(using: str) -> Found:
    """Return the queues of which gates hold jobs for long."""
    with read_in_order(using):
        found = list_held(using, listed=VISITED, visits=VISITED, most=1)
    return Found([one.queue_id for one in found if is_late(one)], len(found) == VISITED)


def busy_in_trouble(using: str, trouble: Trouble, busy: Busy) -> Found:
    """Return the busy queues that are late, full, or without a worker."""
    waiting = busy.waiting
    match trouble:
        case Trouble.LATE:
            found = [queue for queue in waiting if (queue.wait_seconds or 0) > LATE_SECONDS]
        case Trouble.FULL:
            found = [queue for queue in waiting if is_full(queue.num_slots, queue.active)]
        case _:
            takers = read_takers(using)
            found = [q for q in waiting if not takers.take(q.tenant, q.name, q.executor)]
    return Found([queue.id for queue in found], busy.capped)


def find_late(queues: Iterable[BusyQueue]) -> list[BusyQueue]:
    """Return those that are late although they are neither paused nor without slots."""
    going_on = [queue for queue in queues if not queue.paused and queue.num_slots != 0]
    return [queue for queue in going_on if (queue.wait_seconds or 0) > LATE_SECONDS]


def is_full(slots: int | None, taken: int) -> bool:
    """Return whether all slots of a queue are taken; it must have some."""
    return slots is not None and 0 < slots <= taken
