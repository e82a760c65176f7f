"""Bulk actions beside transactions that hold rows of the same jobs, and beside another run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from django_tenantqueue import bulk
from django_tenantqueue.exceptions import ClaimLost
from django_tenantqueue.models import Change, Job
from django_tenantqueue.operations import bulk as operations
from django_tenantqueue.operations.bulk_actions import ACTIONS
from django_tenantqueue.states import State
from django_tenantqueue.status.job_filters import read_filters
from django_tenantqueue.testing import run_pending
from tests.factories import make_jobs, make_queue, states_of


@pytest.fixture
def holder(open_connection: Callable[[], psycopg.Connection[Any]]) -> psycopg.Connection[Any]:
    opened = open_connection()
    opened.execute("BEGIN")
    return opened


def test_rows_that_stay_locked_are_left_and_counted(
    holder: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "PAUSES", (0.0, 0.0))
    ids = make_jobs(make_queue(paused=True), 12, state=State.ERROR)
    holder.execute("SELECT 1 FROM tenantqueue_job WHERE id = %s FOR UPDATE", [ids[5]])
    bulk.start("retry", {"state": "error"})

    (job,) = run_pending()

    holder.rollback()
    assert job.result == {"changed": 11, "left": {"locked": 1}}
    assert [i for i, state in states_of(ids).items() if state == State.ERROR] == [ids[5]]
    assert Change.objects.get().object_count == 11


def test_rows_that_are_locked_for_a_moment_are_changed(
    holder: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = make_jobs(make_queue(paused=True), 12, state=State.ERROR)
    holder.execute("SELECT 1 FROM tenantqueue_job WHERE id = %s FOR UPDATE", [ids[5]])
    monkeypatch.setattr("time.sleep", lambda seconds: holder.rollback())
    bulk.start("retry", {"state": "error"})

    (job,) = run_pending()

    assert job.result == {"changed": 12, "left": {}}
    assert Change.objects.get().object_count == 12


def test_rows_of_queues_are_not_locked_where_a_user_sees_some_tenants(
    holder: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue("acme", paused=True)
    make_jobs(queue, 12, state=State.ERROR)
    monkeypatch.setattr(bulk, "visible_jobs", lambda using, user: Job.objects.for_tenant("acme"))
    bulk.start("retry", {"state": "error"})
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it waits"))
    locking = "SELECT 1 FROM tenantqueue_tenantqueue WHERE id = %s FOR NO KEY UPDATE"
    holder.execute(locking, [queue.pk])

    (job,) = run_pending()

    assert job.result == {"changed": 12, "left": {}}


def test_a_second_run_of_the_same_job_goes_on_where_the_first_one_is() -> None:
    ids = make_jobs(make_queue(paused=True), 20, state=State.ERROR)
    job = bulk.start("retry", {"state": "error"})
    first, second = made_bulk(job, 0), made_bulk(job, 0)
    newest, oldest = ids[10:], ids[:10]

    begun = operations.act_on(first, newest, newest[0], operations.Tally())
    late = operations.act_on(second, newest, newest[0], operations.Tally())

    assert begun == late == operations.Tally(10, {}, newest[0])
    end = operations.act_on(second, oldest, 0, late)
    assert operations.act_on(first, oldest, 0, begun) == end == operations.Tally(20, {}, 0)
    assert Change.objects.get().object_count == 20


def test_a_run_that_has_lost_its_job_changes_nothing() -> None:
    ids = make_jobs(make_queue(paused=True), 2, state=State.ERROR)
    job = bulk.start("retry", {"state": "error"})

    with pytest.raises(ClaimLost):
        operations.act_on(made_bulk(job, 7), ids, 0, operations.Tally())

    assert set(states_of(ids).values()) == {State.ERROR}


def made_bulk(job: Job, claim_seq: int) -> operations.Bulk:
    asked = read_filters("default", {"state": "error"})
    return operations.Bulk(
        "default",
        ACTIONS["retry"],
        {},
        {"state": "error"},
        asked,
        Job.objects.using("default"),
        job.created_at,
        operations.Claim(job.pk, claim_seq),
    )
