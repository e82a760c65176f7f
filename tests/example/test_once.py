"""The fixed batch of reports, run by a real worker, and its check, which can fail."""

import subprocess
from collections.abc import Iterator

import psycopg
import pytest

from .conftest import FLIGHTS, manage, run_demo

Once = tuple[str, subprocess.CompletedProcess[str]]


@pytest.fixture
def connection(once: Once) -> Iterator[psycopg.Connection]:
    with psycopg.connect(once[0], autocommit=True) as connection:
        yield connection


def check_batch(once: Once) -> subprocess.CompletedProcess[str]:
    return manage(once[0], "check_batch")


@pytest.mark.heavy
def test_batch_is_run_to_the_end_when_asked_for_once(once: Once) -> None:
    _, done = once

    assert done.returncode == 0, done.stdout + done.stderr
    assert "All 60 reports ran as often and ended as expected" in done.stdout
    # every airline is in the table
    assert len([line for line in done.stdout.splitlines() if " Free " in line]) == 7


def test_sample_is_loaded_when_there_was_nothing(
    once: Once, connection: psycopg.Connection
) -> None:
    def one(query: str) -> int:
        row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])

    assert one("SELECT count(*) FROM flights_flight") == FLIGHTS
    assert one("SELECT count(*) FROM flights_airline") == 16
    assert one("SELECT count(*) FROM flights_airport WHERE name LIKE '%\\\\%'") == 0
    assert one("SELECT count(*) FROM flights_weather") == 26115
    assert one("SELECT sum(flight_count) FROM flights_airline") == FLIGHTS
    assert one("SELECT count(*) FROM flights_flight WHERE departure_delay IS NULL") > 0
    assert one("SELECT count(DISTINCT extract(month FROM day)) FROM flights_flight") == 12


def test_data_is_left_as_it_is_when_loaded_again(once: Once) -> None:
    done = manage(once[0], "load_flights")

    assert "3,000 flights of 16 airlines" in done.stdout
    assert "(loaded before)" in done.stdout


def test_check_passes_when_repeated(once: Once) -> None:
    done = check_batch(once)

    assert done.returncode == 0, done.stdout + done.stderr


def test_check_fails_when_slots_are_lower_than_what_ran(
    once: Once, connection: psycopg.Connection
) -> None:
    connection.execute("CREATE TABLE kept AS SELECT id, num_slots FROM tenantqueue_tenantqueue")
    connection.execute("UPDATE tenantqueue_tenantqueue SET num_slots = 0")
    try:
        done = check_batch(once)
    finally:
        connection.execute(
            "UPDATE tenantqueue_tenantqueue q SET num_slots = kept.num_slots "
            "FROM kept WHERE kept.id = q.id"
        )
        connection.execute("DROP TABLE kept")

    assert done.returncode == 1
    assert "has 0 slots, but" in done.stdout


def test_check_fails_when_a_run_is_not_recorded(once: Once, connection: psycopg.Connection) -> None:
    connection.execute("UPDATE flights_reportrun SET job_id = -job_id WHERE id = 1")
    try:
        done = check_batch(once)
    finally:
        connection.execute("UPDATE flights_reportrun SET job_id = -job_id WHERE id = 1")

    assert done.returncode == 1
    assert "by its own records" in done.stdout


def test_check_fails_when_a_job_is_gone(once: Once, connection: psycopg.Connection) -> None:
    (job_id,) = connection.execute("SELECT min(job_id) FROM flights_batchjob").fetchone() or (0,)
    move = "UPDATE tenantqueue_job_history SET id = %s WHERE id = %s"
    connection.execute(move, [-job_id, job_id])
    try:
        done = check_batch(once)
    finally:
        connection.execute(move, [job_id, -job_id])

    assert done.returncode == 1
    assert f"job {job_id} of " in done.stdout
    assert "is lost: it is not in the job table" in done.stdout


def test_batch_is_refused_when_a_queue_is_paused(
    once: Once, connection: psycopg.Connection
) -> None:
    pause = "UPDATE tenantqueue_tenantqueue SET paused = %s WHERE tenant = 'UA'"
    connection.execute(pause, [True])
    try:
        done = run_demo(once[0], "--once")
    finally:
        connection.execute(pause, [False])

    assert done.returncode == 1
    assert "never end: UA/heavy, UA/reports" in done.stderr


def test_error_is_a_sentence_when_the_server_does_not_answer() -> None:
    done = run_demo("postgres://nobody@127.0.0.1:1/nothing", "--once")

    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_migrations_are_complete_when_compared_with_the_models(once: Once) -> None:
    done = manage(once[0], "makemigrations", "--check", "--dry-run", "flights")

    assert done.returncode == 0, done.stdout + done.stderr
