"""The advisory locks, all in one place: other programs in the database must not use their keys."""

from __future__ import annotations

from enum import IntEnum

from ..gates import ORDER


class LockClass(IntEnum):
    """First keys of the locks that have two."""

    LEASE = 0x7471
    """A worker lives; the second key is its id. Its supervisor holds the lock."""
    HISTORY = 0x74716869
    """Leaves of the history are made or dropped; 0."""
    MONITOR_ADDITION = 0x7471673F
    """Details are added to a monitor; the hash of its id."""
    QUEUE = 0x74717175
    """Claims from a queue without limit, shared; its id. The migrations' trigger
    tenantqueue_queue_limited takes it, too."""
    TURNSTILE = 0x7471746E
    """A worker claims where many crowd; 0."""


GATE_LOCK_CLASSES = {kind: 0x74716730 + at for at, kind in enumerate(ORDER)}
"""The same of the locks on gates, by kind; the second key is the hash of the gate's key."""


class LockKey(IntEnum):
    """Keys of the locks that have one."""

    MAINTENANCE = 0x74717565
    """A supervisor does the fleet's maintenance."""
    SCHEDULES = 0x74717363
    """Schedules that code declares are compared with their rows."""
