"""Troubles that an operator finds in the demo's admin."""

from collections.abc import Callable

import psycopg
import pytest

from .conftest import FLIGHTS, manage

KINDS = 9


@pytest.fixture(scope="module")
def url(make_database: Callable[[], str]) -> str:
    """Return the URL of a database with the demo's data and no worker."""
    url = make_database()
    for command in (("migrate", "--verbosity=0"), ("load_flights", f"--most={FLIGHTS}")):
        done = manage(url, *command)
        assert done.returncode == 0, done.stderr
    return url


def read(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


def make(url: str) -> list[str]:
    """Make the troubles; return what the command says."""
    done = manage(url, "make_troubles")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_troubles_are_there_when_they_were_made(url: str) -> None:
    said = make(url)

    assert len(said) == KINDS
    queues = "SELECT paused, num_slots FROM tenantqueue_tenantqueue WHERE name = 'reports'"
    assert read(url, f"{queues} AND tenant = 'AS'")[0][0] is True
    assert read(url, f"{queues} AND tenant = 'VX'")[0][1] == 0
    assert read(url, "SELECT num_slots FROM tenantqueue_taskcontrol") == [(1,)]
    assert read(url, "SELECT count(*) FROM tenantqueue_alertrule") == [(3,)]
    assert read(url, "SELECT DISTINCT actor FROM tenantqueue_change") == [("maria",)]


def test_second_run_adds_nothing_when_nothing_was_mended(url: str) -> None:
    make(url)
    counts = "SELECT (SELECT count(*) FROM tenantqueue_job), count(*) FROM tenantqueue_change"
    before = read(url, counts)

    said = make(url)

    assert len(said) == KINDS
    assert read(url, counts) == before
