"""Django's connection pools: the process that forks has none, each child has its own."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper

from django_tenantqueue.worker import children
from django_tenantqueue.worker.children import Children
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.lease import Lease
from django_tenantqueue.worker.marks import Marks

OPTION = {"max_size": 3}


class Ended(BaseException):
    """The end of what would be a process."""


class FakePool:
    """What Django asks of a pool of psycopg_pool when a process lets go of it."""

    is_closed = False

    def close(self) -> None:
        """Note that it is closed."""
        self.is_closed = True


@pytest.fixture
def pool(monkeypatch):
    """Yield the open pool of the default database."""
    options = connections.settings["default"]["OPTIONS"]
    monkeypatch.setitem(options, "pool", OPTION)
    monkeypatch.setattr(DatabaseWrapper, "_connection_pools", {"default": FakePool()})
    return DatabaseWrapper._connection_pools["default"]


def option() -> Any:
    return connections.settings["default"]["OPTIONS"].get("pool")


@pytest.fixture
def fork(monkeypatch):
    """Return a function that forks a child in appearance; it returns what the child would run."""
    seen: dict[str, Any] = {}

    class Run:
        def __init__(self, *args: Any) -> None:
            seen["in the child"] = option()

        def run(self) -> int:
            return 0

    def exit_(code: int) -> None:
        raise Ended

    def fork_to(pid: int) -> dict[str, Any]:
        def forked() -> int:
            seen["at the fork"] = option()
            return pid

        monkeypatch.setattr(os, "fork", forked)
        with suppress(Ended):
            kept._fork("w.0", 1, Marks(1))
        return seen

    monkeypatch.setattr(children, "WorkerProcess", Run)
    monkeypatch.setattr(children, "die_with_parent", lambda parent: None)
    monkeypatch.setattr(os, "_exit", exit_)
    config = WorkerConfig(database="default", name="w")
    kept = Children(config, Lease("default", "w"), say=lambda text: None, in_child=lambda: None)
    return fork_to


def test_pool_is_closed_when_the_supervisor_forks(pool, fork):
    assert fork(pid=7) == {"at the fork": None}

    assert pool.is_closed
    assert DatabaseWrapper._connection_pools == {}
    assert option() is None


def test_child_has_a_pool_of_its_own_when_it_was_forked(pool, fork):
    fork(pid=7)

    assert fork(pid=0) == {"at the fork": None, "in the child": OPTION}
    assert DatabaseWrapper._connection_pools == {}
