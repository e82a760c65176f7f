"""OPTIONS of the databases: no pool where children are forked, and vanished servers are noticed."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper

from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.supervisor import children
from django_tenantqueue.worker.supervisor.children import PATIENT_KEEPALIVE, Children
from django_tenantqueue.worker.supervisor.lease import KEEPALIVE, Lease

POOL = {"max_size": 3}


class Ended(BaseException):
    """The end of what would be a process."""


class FakePool:
    """What Django asks of a pool of psycopg_pool when a process lets go of it."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def options(monkeypatch):
    """Return the OPTIONS of the default database, to be changed."""
    settings = connections.settings["default"]
    monkeypatch.setitem(settings, "OPTIONS", dict(settings["OPTIONS"]))
    return settings["OPTIONS"]


@pytest.fixture
def pool(options, monkeypatch):
    connections["default"].close()  # it came from none
    options["pool"] = POOL
    monkeypatch.setitem(connections.settings["default"], "CONN_HEALTH_CHECKS", False)
    monkeypatch.setattr(DatabaseWrapper, "_connection_pools", {"default": FakePool()})
    return DatabaseWrapper._connection_pools["default"]


@pytest.fixture
def fork(options, monkeypatch):
    """Return a function that starts a child in appearance; it returns the options that it has."""
    seen: dict[str, Any] = {}

    class Run:
        def __init__(self, *args: Any) -> None:
            seen.update(options)

        def run(self) -> int:
            return 0

    def exit_(code: int) -> None:
        raise Ended

    def fork_to(pid: int) -> dict[str, Any]:
        monkeypatch.setattr(os, "fork", lambda: pid)
        kept._due[0] = 0.0
        with suppress(Ended):
            kept.start_due()
        return seen

    monkeypatch.setattr(children, "WorkerProcess", Run)
    monkeypatch.setattr(children, "die_with_parent", lambda parent: None)
    monkeypatch.setattr(os, "_exit", exit_)
    monkeypatch.setattr(Lease, "register", lambda lease, worker: 1)
    config = WorkerConfig(database="default", name="w")
    kept = Children(config, Lease("default", "w"), say=lambda text: None, in_child=lambda: None)
    return fork_to


def test_pool_is_closed_when_the_supervisor_has_forked(pool, fork, options):
    fork(pid=7)

    assert pool.is_closed
    assert DatabaseWrapper._connection_pools == {}
    assert "pool" not in options


def test_child_has_a_pool_of_its_own_when_it_was_forked(pool, fork):
    fork(pid=7)

    assert fork(pid=0)["pool"] == POOL
    assert DatabaseWrapper._connection_pools == {}
    assert connections.settings["default"]["CONN_HEALTH_CHECKS"] is True


def test_supervisor_notices_a_vanished_server_as_soon_as_its_lease_does(fork, options):
    options["tcp_user_timeout"] = 1_000_000
    fork(pid=7)

    assert options.items() >= KEEPALIVE.items()


def test_child_notices_a_vanished_server_unless_the_project_says_otherwise(fork, options):
    options["keepalives_idle"] = 60
    fork(pid=7)

    changed = fork(pid=0)

    assert changed.items() >= {**PATIENT_KEEPALIVE, "keepalives_idle": 60}.items()
    assert "connect_timeout" not in changed
