"""Room in tenant queues that have a limit of their waiting jobs (`max_waiting`).

What waits is counted now and then, and remembered by each process in between. So the limit is soft:
processes that fill a queue at the same time may each put in what there was room for when they
counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from ..batch_sizes import REMEMBERED_SECONDS
from ..queries.enqueue import count_waiting

LEAST_SECONDS = REMEMBERED_SECONDS / 100
"""Shortest time for which a count is used."""


@dataclass(slots=True)
class _Room:
    max_waiting: int
    left: int
    until: float


_rooms: dict[tuple[str, int], _Room] = {}
"""(alias, queue id) -> what is known of a queue that has a limit."""


def is_limited(using: str, queue_id: int) -> bool:
    """Whether a queue had a limit when it was last looked at."""
    return (using, queue_id) in _rooms


def take_room(using: str, queue_id: int, count: int) -> int | None:
    """Take room for `count` jobs; return None, or `max_waiting` when there is not enough.

    The jobs are counted in the caller's transaction, unless this process did so a moment ago.
    """
    key = (using, queue_id)
    room = _rooms.get(key)
    if room is None or room.until <= monotonic():
        room = _count(using, queue_id)
        if room is None:
            _rooms.pop(key, None)
            return None
        _rooms[key] = room
    if room.left < count:
        return room.max_waiting
    room.left -= count
    return None


def _count(using: str, queue_id: int) -> _Room | None:
    began = monotonic()
    found = count_waiting(using, queue_id)
    if found is None:
        return None
    max_waiting, waiting = found
    now = monotonic()
    # counting takes at most a twentieth of the time
    remembered = min(REMEMBERED_SECONDS, max(LEAST_SECONDS, 20 * (now - began)))
    return _Room(max_waiting, max_waiting - waiting, now + remembered)


def forget_rooms() -> None:
    """Forget all counts."""
    _rooms.clear()
