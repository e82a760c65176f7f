"""Hooks that run after the commit, one for many enqueues of a transaction."""

from __future__ import annotations

from typing import Protocol, TypeVar

from django.db import connections, transaction


class Hook(Protocol):
    """An action after a commit, collected while the transaction is open."""

    savepoints: set[str]
    """Savepoints that were open when it was registered: a rollback to one of them drops it."""

    def send(self) -> None:
        """Do it. (A method, since Django names a hook that fails.)"""


H = TypeVar("H", bound=Hook)


def open_savepoints(using: str) -> set[str]:
    """Return the savepoints that are open on a connection."""
    return set(connections[using].savepoint_ids)


def last_hook(kind: type[H], using: str) -> H | None:
    """Return the last hook of the open transaction, if it is of this kind and may be added to."""
    wrapper = connections[using]
    hooks = wrapper.run_on_commit if wrapper.in_atomic_block else []
    last = getattr(hooks[-1][1], "__self__", None) if hooks else None
    if isinstance(last, kind) and last.savepoints == open_savepoints(using):
        return last
    return None


def register(hook: Hook, using: str) -> None:
    """Send a hook after the commit; at once in autocommit mode."""
    transaction.on_commit(hook.send, using=using, robust=True)
