"""The worker's own connection: what it reads is right whatever the server's settings are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connections
from django.test import override_settings
from psycopg import OperationalError

from django_tenantqueue.worker.connection import connect, is_rejecting

pytestmark = pytest.mark.django_db


@pytest.fixture
def options(monkeypatch):
    def change(**changes: object) -> None:
        for name, value in changes.items():
            monkeypatch.setitem(connections.settings["default"]["OPTIONS"], name, value)

    return change


@pytest.mark.parametrize("pooler", [False, True])
@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin"])
def test_time_is_read_in_utc_when_the_server_has_another_time_zone(options, zone, pooler):
    options(options=f"-c TimeZone={zone}")
    with (
        override_settings(TENANTQUEUE={"POOLER": pooler}),
        connect("default", "test") as connection,
    ):
        (at,) = connection.execute("SELECT '2026-07-01 12:00+00'::timestamptz").fetchone()

    assert at == datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert at.tzinfo is UTC


def test_values_are_read_when_the_role_has_other_formats(options):
    options(options="-c DateStyle=German -c array_nulls=off -c standard_conforming_strings=off")
    with connect("default", "test") as connection:
        at, texts = connection.execute(
            "SELECT '2026-07-01 12:00+00'::timestamptz, '{NULL}'::text[]"
        ).fetchone()

    assert (at, texts) == (datetime(2026, 7, 1, 12, tzinfo=UTC), [None])


def test_role_is_taken_on_when_the_project_names_one(options):
    options(assume_role="pg_monitor")
    with connect("default", "test") as connection:
        (role,) = connection.execute("SELECT current_user").fetchone()

    assert role == "pg_monitor"


def test_server_is_asked_whether_it_rejects_when_the_project_has_a_connect_timeout(options):
    options(connect_timeout=7)

    assert not is_rejecting("default", 2)


def test_connection_is_given_up_when_no_answer_comes():
    with connect("default", "test", answer_seconds=0.3) as connection:
        with pytest.raises(OperationalError, match=r"has not answered for 0\.[34] s"):
            connection.execute("SELECT pg_sleep(3)")

        assert connection.closed
