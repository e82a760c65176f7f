"""The advisory locks, all in one place: other programs in the database must not use their keys.

Installations that share a database, each in a schema of its own, have different keys: the oid of a
table is part of each.
"""

from __future__ import annotations

from enum import IntEnum

from ..gate_keys import ORDER


class LockClass(IntEnum):
    """What the first key of locks that have two is computed of: see sql/parts/lock_class.sql."""

    LEASE = 0x7471
    """A worker lives; the second key is its id. Its supervisor holds the lock."""
    MONITOR_ADDITION = 0x7471673F
    """Details are added to a monitor; the hash of its id."""
    QUEUE = 0x74717175
    """Claims from a queue without limit, shared; its id. The migrations' trigger
    tenantqueue_queue_limited takes it, too."""


GATE_LOCK_CLASSES = {kind: 0x74716730 + at for at, kind in enumerate(ORDER)}
"""The same of the locks on gates, by kind; the second key is the hash of the gate's key."""


class LockKey(IntEnum):
    """What the key of locks that have one is computed of: see KEY."""

    HISTORY = 0x74716869
    """Leaves of the history are made or dropped."""
    MAINTENANCE = 0x74717565
    """A supervisor does the fleet's maintenance."""
    SCHEDULES = 0x74717363
    """Schedules that code declares are compared with their rows."""
    TURNSTILE = 0x7471746E
    """A worker claims where many crowd."""


KEY = "(%s::bigint << 32) + 'tenantqueue_tenantqueue'::regclass::oid::bigint"
"""SQL of the key of a LockKey, its parameter. sql/parts/lock_key.sql has the same."""
