"""Names and keys of gates, which a job passes one after another before it is ready."""

from __future__ import annotations

import json
from typing import NamedTuple, Self

MONITOR = "monitor"
SESSION = "session"
LIMIT_USER = "limit_user"
EXCLUSIVE = "exclusive"
TASK = "task"
ORDER = (MONITOR, SESSION, LIMIT_USER, EXCLUSIVE, TASK)
"""The order in which a job passes its gates, and in which they are locked."""
EVERYBODY = ""
"""The user whose limit is the default of a tenant's users."""


def gate_key(tenant: str, key: str) -> str:
    """Return the text that jobs carry for a key of a tenant: `tenant/key`, unambiguous."""
    return f"{_escaped(tenant)}/{key}"


def own_key(tenant: str, key: str | None) -> str | None:
    """Return the key that was given to gate_key() for this text."""
    return None if key is None else key.removeprefix(gate_key(tenant, ""))


def _escaped(tenant: str) -> str:
    return tenant.replace("\\", "\\\\").replace("/", "\\/")


class JobGates(NamedTuple):
    """The gates that a job passes, None where it has none; `halts`: its failure halts a session.

    `unique` is no gate: it is the key that is freed when the job has ended.
    """

    monitor: str | None = None
    session: str | None = None
    limit_user: str | None = None
    exclusive: str | None = None
    halts: bool = False
    unique: str | None = None
    task: str | None = None
    """Its task, when that has a cap: no job comes with it, a claim sets it."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the gates of a claimed job from its JSON text."""
        return cls(*json.loads(text))

    def text(self) -> str:
        """Return them as JSON text, for read()."""
        return json.dumps(self)

    def first(self) -> str | None:
        """Return the gate that a new job comes to first; None: it has none."""
        return next(iter(self.keys()), None)

    def keys(self) -> dict[str, str]:
        """Return the keys of its gates by their kinds, in order."""
        keys = (self.monitor, self.session, self.limit_user, self.exclusive, self.task)
        return {kind: key for kind, key in zip(ORDER, keys, strict=True) if key is not None}
