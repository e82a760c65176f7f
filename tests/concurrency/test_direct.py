"""The short way to the server takes and gives what a cursor does."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, ProgrammingError, connection, transaction

from django_tenantqueue.models import Job
from django_tenantqueue.queries import direct
from django_tenantqueue.states import Priority
from tests.factories import make_queue, state_of
from tests.testapp.tasks import echo, noop

GIVEN = {
    "priority": Priority.USER_HIGH,
    "expires_at": datetime(2031, 2, 3, 4, 5, 6, 789, ZoneInfo("America/New_York")),
    "max_attempts": 7,
    "timeout": 0.1 + 0.2,
    "hard_timeout": 1e6,
    "labels": ["plain", "", 'a "quoted" one', "back\\slash", "{,}", "NULL", "größer 🙂"],
    "created_by": "Zoë O'Neil",
}
OWN = ("id", "created_at", "run_at")


def stored(job_id: int) -> dict[str, object]:
    """Return the columns of a job that do not differ between two jobs of the same call."""
    row = Job.objects.filter(pk=job_id).values().get()
    return {name: value for name, value in row.items() if name not in OWN}


@pytest.fixture
def ways(monkeypatch):
    """Return a function that enqueues both ways and returns both jobs."""

    def enqueue_both(**options):
        task = echo.using(tenant="acme", **options)
        short = task.delay({"text": 'ü"\\🙂', "n": 1.5})
        monkeypatch.setattr(direct, "can_prepare", lambda raw: False)
        monkeypatch.setattr(direct, "_fetch", lambda *_: pytest.fail("it went the short way"))
        return short, task.delay({"text": 'ü"\\🙂', "n": 1.5})

    return enqueue_both


def test_rows_are_the_same_when_jobs_go_either_way(ways):
    short, other = ways(**GIVEN)

    assert stored(short.pk) == stored(other.pk)
    assert stored(short.pk)["labels"] == GIVEN["labels"]
    assert stored(short.pk)["timeout_seconds"] == GIVEN["timeout"]
    assert stored(short.pk)["expires_at"] == GIVEN["expires_at"]


def test_rows_are_the_same_when_nothing_is_given(ways):
    short, other = ways()

    assert stored(short.pk) == stored(other.pk)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2040, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        datetime(2001, 1, 1, tzinfo=ZoneInfo("Asia/Kathmandu")),
        timedelta(days=2),
    ],
)
def test_moments_are_the_same_when_jobs_go_either_way(ways, moment):
    short, other = ways(run_at=moment)

    assert short.state == other.state
    difference = short.refresh().run_at - other.refresh().run_at
    assert abs(difference) < timedelta(seconds=5 if isinstance(moment, timedelta) else 0.000001)


def test_first_statement_of_a_transaction_is_rolled_back_with_it():
    noop.using(tenant="acme").delay()
    before = Job.objects.count()

    with transaction.atomic():
        noop.using(tenant="acme").delay()
        noop.using(tenant="acme").delay()
        transaction.set_rollback(True)

    assert Job.objects.count() == before


def test_savepoint_takes_the_job_back_when_it_is_rolled_back():
    with transaction.atomic():
        kept = noop.using(tenant="acme").delay()
        with transaction.atomic():
            noop.using(tenant="acme").delay()
            transaction.set_rollback(True)

    assert list(Job.objects.values_list("pk", flat=True)) == [kept.pk]


@pytest.mark.parametrize("discard", ["DISCARD ALL", "DEALLOCATE ALL"])
def test_statement_is_prepared_again_when_the_server_has_forgotten_it(discard):
    noop.using(tenant="acme").delay()
    with connection.cursor() as cursor:
        cursor.execute(discard)

    job = noop.using(tenant="acme").delay()

    assert state_of(job.pk) == "ready"


def test_next_job_is_stored_when_the_server_forgot_the_statement_in_a_transaction():
    noop.using(tenant="acme").delay()

    def enqueue_after_forgetting():
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("DEALLOCATE ALL")
            noop.using(tenant="acme").delay()

    with pytest.raises(ProgrammingError, match="does not exist"):
        enqueue_after_forgetting()

    assert state_of(noop.using(tenant="acme").delay().pk) == "ready"


def test_error_is_that_of_django_when_the_server_refuses_the_row():
    queue = make_queue("acme")
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE tenantqueue_job_hot ADD CONSTRAINT refused CHECK (priority > 9)"
        )
    try:
        with pytest.raises(IntegrityError, match="refused"):
            noop.using(tenant="acme", priority=3).delay()
        with pytest.raises(IntegrityError, match="refused"), transaction.atomic():
            noop.using(tenant="acme", priority=3).delay()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tenantqueue_job_hot DROP CONSTRAINT refused")

    assert state_of(noop.using(tenant="acme").delay().pk) == "ready"
    assert not Job.objects.filter(queue=queue, priority=3).exists()


def test_job_goes_through_when_the_connection_was_opened_anew():
    noop.using(tenant="acme").delay()
    connection.close()

    assert state_of(noop.using(tenant="acme").delay().pk) == "ready"


def test_connection_that_was_ended_is_an_operational_error():
    noop.using(tenant="acme").delay()
    pid = connection.connection.info.backend_pid
    with psycopg.connect(**_parameters()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    with pytest.raises(OperationalError):
        noop.using(tenant="acme").delay()

    connection.close_if_unusable_or_obsolete()
    assert state_of(noop.using(tenant="acme").delay().pk) == "ready"


def test_job_goes_through_when_a_health_check_finds_the_connection_ended(monkeypatch):
    settings = connection.settings_dict
    monkeypatch.setitem(settings, "CONN_HEALTH_CHECKS", True)
    monkeypatch.setitem(settings, "CONN_MAX_AGE", None)
    connection.close()
    noop.using(tenant="acme").delay()
    with psycopg.connect(**_parameters()) as other:
        other.execute(
            "SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid]
        )
    connection.close_if_unusable_or_obsolete()  # as at the start of a request

    assert state_of(noop.using(tenant="acme").delay().pk) == "ready"


def _parameters():
    params = dict(connection.get_connection_params())
    params.pop("cursor_factory", None)
    params.pop("context", None)
    return params


def test_nul_is_refused_and_not_cut_off():
    noop.using(tenant="acme").delay()
    new = {"text": "a\x00b"}
    raw = connection.connection

    with pytest.raises(psycopg.DataError, match="NUL"):
        direct._encode(new["text"])
    with pytest.raises(psycopg.DataError, match="NUL"):
        direct._encode(["a\x00b"])

    assert raw.info.transaction_status.name == "IDLE"


def test_cursor_is_used_when_the_short_way_would_not_do(settings):
    noop.using(tenant="acme").delay()
    raw = connection.connection
    assert direct.can_prepare(raw)
    raw.prepare_threshold = 5  # psycopg may drop what it has not prepared
    assert not direct.can_prepare(raw)
    raw.prepare_threshold = None
    with raw.pipeline():
        assert not direct.can_prepare(raw)
    with connection.cursor() as cursor:
        cursor.execute("SET client_encoding TO latin1")
        assert not direct.can_prepare(raw)
        cursor.execute("SET client_encoding TO utf8")
    assert direct.can_prepare(raw)
    settings.TENANTQUEUE = {"POOLER": True}
    assert not direct.can_prepare(raw)


def test_jobs_go_through_when_psycopg_prepares_statements_itself():
    connection.ensure_connection()
    connection.connection.prepare_threshold = 0
    try:
        for _ in range(3):
            with transaction.atomic():
                noop.using(tenant="acme").delay()
                noop.using(tenant="acme").enqueue_many([()] * 3)
                list(Job.objects.all()[:1])
                transaction.set_rollback(True)
    finally:
        connection.connection.prepare_threshold = None
    noop.using(tenant="acme").delay()

    assert Job.objects.count() == 1


def test_jobs_go_through_when_transactions_are_rolled_back_in_between():
    for _ in range(3):
        with transaction.atomic():
            noop.using(tenant="acme").delay()
            noop.using(tenant="acme").enqueue_many([()] * 3)
            transaction.set_rollback(True)
        noop.using(tenant="acme").enqueue_many([()] * 2)
        noop.using(tenant="acme").delay()

    assert Job.objects.count() == 9


def test_broken_transaction_is_refused_as_by_django():
    noop.using(tenant="acme").delay()
    with transaction.atomic():
        transaction.set_rollback(True)

        with pytest.raises(transaction.TransactionManagementError):
            noop.using(tenant="acme").delay()
