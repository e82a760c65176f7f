"""Guarantee 6: the effects of an atomic task and its success are stored together, once."""

from __future__ import annotations

import threading

import psycopg
import pytest
from django.db import connections

from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.run import run_sync
from django_tenantqueue.models import Job
from tests.factories import state_of
from tests.testapp.models import Effect
from tests.testapp.tasks import write_effect


@pytest.fixture
def claimed(worker):
    write_effect.using(tenant="acme").delay("x")
    (job,) = worker.claim()
    return job


def test_effect_is_stored_with_the_success_when_the_claim_stands(worker, claimed):
    outcome = run_sync(RunningJob(claimed), worker.id)

    assert outcome.stored
    assert state_of(claimed.id) == "success"
    assert Effect.objects.get().job_id == claimed.id


def test_effect_is_undone_when_the_claim_was_lost(worker, claimed):
    worker.give_back([claimed])

    outcome = run_sync(RunningJob(claimed), worker.id)

    assert outcome.lost
    assert not Effect.objects.exists()
    assert state_of(claimed.id) == "ready"


def test_effect_is_there_once_when_two_runs_of_a_job_overlap(worker_factory, worker, claimed):
    """A worker that was taken for dead ends its run after the job has been given to another."""
    other = worker_factory()
    worker.give_back([claimed])
    (again,) = other.claim()

    assert run_sync(RunningJob(again), other.id).stored
    assert run_sync(RunningJob(claimed), worker.id).lost
    assert Effect.objects.count() == 1
    assert Job.objects.get().attempt == 1


def test_nothing_is_seen_by_others_when_an_atomic_task_still_runs(
    worker, claimed, threads, monkeypatch
):
    wrote, go = threading.Event(), threading.Event()
    finish = run_sync.__globals__["success"]

    def held_success(*args):
        wrote.set()
        assert go.wait(20)
        return finish(*args)

    monkeypatch.setitem(run_sync.__globals__, "success", held_success)
    running = threads.start(run_sync, RunningJob(claimed), worker.id)
    assert wrote.wait(20)
    assert not Effect.objects.exists()
    assert state_of(claimed.id) == "queued"
    go.set()

    assert running.result(20).stored
    assert Effect.objects.exists()


def test_success_is_known_when_the_connection_breaks_after_the_commit(worker, claimed, monkeypatch):
    commit = type(connections["default"])._commit

    def commit_and_break(self):
        commit(self)
        self.connection.close()
        self.connection.execute("SELECT 1")

    with monkeypatch.context() as patched:
        patched.setattr(type(connections["default"]), "_commit", commit_and_break)
        outcome = run_sync(RunningJob(claimed), worker.id)

    assert outcome.stored
    assert state_of(claimed.id) == "success"
    assert Effect.objects.count() == 1


def test_run_is_repeated_when_the_connection_breaks_before_the_commit(worker, claimed, monkeypatch):
    def break_instead(self):
        self.connection.close()
        self.connection.execute("SELECT 1")

    with monkeypatch.context() as patched:
        patched.setattr(type(connections["default"]), "_commit", break_instead)
        outcome = run_sync(RunningJob(claimed), worker.id)

    assert outcome.failed is not None
    assert not Effect.objects.exists()
    assert state_of(claimed.id) == "queued"


@pytest.mark.parametrize(
    "level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE]
)
def test_success_is_stored_when_the_project_isolates_more_and_the_row_was_written(
    worker, claimed, monkeypatch, level
):
    """The worker notes the start and the progress of a run while its transaction is open."""
    finish = run_sync.__globals__["success"]

    def noted_success(*args):
        worker.db.execute(
            "UPDATE tenantqueue_job_hot SET progress_done = 1 WHERE id = %s", [claimed.id]
        )
        return finish(*args)

    monkeypatch.setitem(run_sync.__globals__, "success", noted_success)
    connections["default"].ensure_connection()
    raw = connections["default"].connection
    raw.isolation_level = level
    try:
        outcome = run_sync(RunningJob(claimed), worker.id)
    finally:
        raw.isolation_level = None

    assert outcome.stored
    assert state_of(claimed.id) == "success"
    assert Effect.objects.count() == 1
