"""An interrupted run ends with its interruption. An outcome is judged whatever a task raises."""

from __future__ import annotations

import asyncio
import json
import queue
import random
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from django_tenantqueue import current_job, task
from django_tenantqueue.exceptions import (
    Cancelled,
    ClaimLost,
    Permanent,
    TimeLimitExceeded,
    UnknownTask,
)
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.outcome import judge
from django_tenantqueue.execution.run import interruption_of, run_async, run_sync
from django_tenantqueue.worker.child.executors import ThreadExecutor, repeat_interruption

SECONDS = 20.0
THREADS = 8
JOBS = 1000


@task
def commit_for_ever() -> None:
    """Run small transactions."""
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            with transaction.atomic():
                cursor.execute("SELECT 2")


class Dropped:
    """Most of the time of a task that makes these is spent in their destructor."""

    def __del__(self) -> None:
        for _ in range(50):
            pass


@task
def drop_for_ever() -> None:
    """Run destructors."""
    while True:
        Dropped()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [Cancelled, TimeLimitExceeded])
def test_interruption_that_hits_a_destructor_is_repeated(claimed_job, monkeypatch, error):
    monkeypatch.setattr(sys, "unraisablehook", repeat_interruption)  # as in a worker
    reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
    executor = ThreadExecutor(1, 1, lambda running, outcome: reports.put(outcome))
    name = drop_for_ever.name
    running = RunningJob(claimed_job(task=name, source_method=name, max_attempts=1))
    executor.submit([running])
    outcome = None
    end = time.monotonic() + SECONDS

    while outcome is None:
        assert time.monotonic() < end
        if running._started and not running._interrupted:
            running._interrupted = True
            executor.interrupt(running, error)
        with suppress(queue.Empty):
            outcome = reports.get(timeout=0.001)

    assert json.loads(outcome.finished.extra)["error"]["class"].endswith(error.__name__)


@pytest.mark.heavy
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (Cancelled, "cancelled django_tenantqueue.exceptions.Cancelled"),
        (TimeLimitExceeded, "error django_tenantqueue.exceptions.TimeLimitExceeded"),
    ],
)
def test_run_ends_with_its_interruption_wherever_it_hits(
    claimed_job: Any, django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch, error: Any, ends: str
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", repeat_interruption)  # as in a worker
    reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
    executor = ThreadExecutor(THREADS, 1, lambda running, outcome: reports.put((running, outcome)))
    waiting = [
        RunningJob(
            claimed_job(
                id=number,
                task=commit_for_ever.name,
                source_method=commit_for_ever.name,
                max_attempts=1,
                timeout_seconds=0.01,
            )
        )
        for number in range(JOBS)
    ]
    found: Counter[str] = Counter()
    under_way: list[tuple[float, RunningJob]] = []

    def give() -> None:
        running = waiting.pop()
        executor.submit([running])
        under_way.append((random.uniform(0.0, 0.004), running))

    with django_db_blocker.unblock():
        for _ in range(THREADS):
            give()
        end = time.monotonic() + 120.0
        while sum(found.values()) < JOBS:
            assert time.monotonic() < end
            for age, running in under_way:
                if running._started and not running._interrupted and running.age_seconds > age:
                    running._interrupted = True
                    running.cancel_requested = error is Cancelled
                    executor.interrupt(running, error)
            try:
                running, outcome = reports.get(timeout=0.001)
            except queue.Empty:
                continue
            told = json.loads(outcome.finished.extra)["error"]["class"]
            found[f"{outcome.finished.state} {told}"] += 1
            under_way = [pair for pair in under_way if pair[1] is not running]
            if waiting:
                give()
        executor.stop()
        for thread in executor._threads:
            thread.join(SECONDS)

    assert found == {ends: JOBS}


class Unprintable(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise KeyboardInterrupt

    __repr__ = __str__


class BytesInSyntax(SyntaxError):
    """What the traceback module cannot format."""

    def __init__(self) -> None:
        super().__init__("wrong", ("a.py", 1, 1, b"bytes"))
        self.text = b"bytes"  # type: ignore[assignment]


class Base(BaseException):
    """Not an Exception, and its text cannot be had."""

    def __str__(self) -> str:
        raise SystemExit

    __repr__ = __str__


ERRORS = {"Unprintable": Unprintable, "BytesInSyntax": BytesInSyntax, "Base": Base}


@task
def raise_one(name: str) -> None:
    """Raise what cannot be shown."""
    raise ERRORS[name]


@task
async def raise_one_in_a_coroutine(name: str) -> None:
    """Raise what cannot be shown."""
    raise ERRORS[name]


@task
def report_unprintable() -> None:
    """Report progress with a message that has no text."""
    current_job().progress(1, 2, Unprintable())  # type: ignore[arg-type]


def run_of(claimed_job: Any, made: Any, *args: Any) -> RunningJob:
    name = made.name
    claimed = claimed_job(
        task=name, source_method=name, max_attempts=1, args=json.dumps({"args": list(args)})
    )
    return RunningJob(claimed)


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("is_async", [False, True])
def test_job_ends_in_error_when_its_error_cannot_be_shown(claimed_job, name, is_async):
    made = raise_one_in_a_coroutine if is_async else raise_one
    running = run_of(claimed_job, made, name)

    async def run() -> Any:
        try:
            return await run_async(running) if is_async else run_sync(running, 1)
        except BaseException as error:  # noqa: BLE001 - executors judge what is not an Exception
            return judge(running, None, error)

    outcome = asyncio.run(run())

    told = json.loads(outcome.finished.extra)["error"]
    assert outcome.finished.state == "error"
    assert told["class"] == f"{__name__}.{name}"


def test_error_of_a_message_is_the_tasks_when_it_has_no_text(claimed_job):
    running = run_of(claimed_job, report_unprintable)
    seen = []

    def run() -> None:
        try:
            run_sync(running, 1)
        except BaseException as error:  # noqa: BLE001 - a KeyboardInterrupt of the task's
            seen.append(judge(running, None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(SECONDS)

    assert json.loads(seen[0].finished.extra)["error"]["class"] == "KeyboardInterrupt"


def test_job_ends_in_error_when_its_retry_policy_ends_the_process(claimed_job, monkeypatch):
    def leave(*_: Any) -> bool:
        raise SystemExit

    monkeypatch.setattr("django_tenantqueue.execution.outcome._may_retry", leave)
    running = RunningJob(claimed_job(max_attempts=3))

    outcome = judge(running, None, ValueError("no"))

    assert json.loads(outcome.finished.extra)["error"]["class"] == "SystemExit"


def test_hidden_interruption_is_found(claimed_job):
    running = RunningJob(claimed_job(timeout_seconds=1.0))
    hidden = DatabaseError("in the rollback")
    hidden.__context__ = ValueError("between")
    hidden.__context__.__context__ = TimeLimitExceeded("it ran too long")

    assert interruption_of(running, hidden) is hidden
    running._interrupted = True
    assert isinstance(interruption_of(running, hidden), TimeLimitExceeded)
    assert isinstance(interruption_of(running, DatabaseError("alone")), TimeLimitExceeded)
    running.cancel_requested = True
    assert isinstance(interruption_of(running, DatabaseError("alone")), Cancelled)
    for own in (KeyError("the task's own"), Permanent("its word")):
        assert interruption_of(running, own) is own


def test_error_of_ours_that_a_task_raises_itself_is_an_error(claimed_job):
    running = RunningJob(claimed_job(max_attempts=1))
    known = SimpleNamespace(hooks=None)

    for error in (ClaimLost("mine"), UnknownTask("mine")):
        assert judge(running, known, error).finished.state == "error"
