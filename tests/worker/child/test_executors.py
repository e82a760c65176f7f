"""Threads and the event loop: what runs, what is taken back, what is stopped."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.utils import timezone, translation

from django_tenantqueue import current_job, task
from django_tenantqueue.exceptions import Cancelled, TimeLimitExceeded
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.worker.child import executors as module
from django_tenantqueue.worker.child.executors import LoopExecutor, ThreadExecutor
from tests.event_loop import loop_in_thread

SECONDS = 10.0
begun: queue.SimpleQueue[int] = queue.SimpleQueue()
gate = threading.Event()


@task
def wait_at_gate() -> str:
    """Say that it has begun, and wait."""
    begun.put(current_job().id)
    assert gate.wait(SECONDS)
    return "done"


@task
def spin_until_stopped() -> None:
    """Say that it has begun, and compute until it is interrupted."""
    begun.put(current_job().id)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        sum(range(1000))


@task
async def wait_in_loop() -> None:
    """Say that it has begun, and wait."""
    begun.put(current_job().id)
    await asyncio.sleep(SECONDS)


@task
async def catch_and_return() -> str:
    """Stand its ground."""
    begun.put(current_job().id)
    try:
        await asyncio.sleep(SECONDS)
    except asyncio.CancelledError:
        return "cleaned up"
    return "not stopped"


seen_by_retry_when: list[type[BaseException]] = []


def note_and_refuse(error: BaseException) -> bool:
    seen_by_retry_when.append(type(error))
    return False


@task(retry_when=note_and_refuse)
async def cancel_itself() -> None:
    """Wait for something that is cancelled, though not by the worker."""
    waiting = asyncio.get_running_loop().create_future()
    waiting.cancel("a connection was closed")
    await waiting


def backend_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


@task
def go_abroad() -> None:
    """Activate another language and time zone, and leave it at that."""
    translation.activate("de")
    timezone.activate("Asia/Tokyo")


@task
async def ask_database() -> int:
    """Return which server process the ORM's async methods use."""
    return await sync_to_async(backend_id)()


@pytest.fixture
def reports(django_db_blocker):
    """Return a queue of (id, claim_seq, outcome)."""
    while not begun.empty():
        begun.get()
    gate.clear()
    with django_db_blocker.unblock():
        yield queue.SimpleQueue()


@pytest.fixture
def threads(reports):
    executor = ThreadExecutor(1, 1, lambda running, outcome: reports.put((running, outcome)))
    yield executor
    gate.set()
    executor.stop()
    for thread in executor._threads:
        thread.join(SECONDS)


@pytest.fixture
def loop(reports):
    with loop_in_thread() as event_loop:
        yield LoopExecutor(event_loop, lambda running, outcome: reports.put((running, outcome)))


@pytest.fixture
def run_of(claimed_job):
    def make(name: str, job_id: int = 7, **changes: object) -> RunningJob:
        full = name if "." in name else f"{__name__}.{name}"
        return RunningJob(claimed_job(id=job_id, task=full, source_method=full, **changes))

    return make


@pytest.fixture
def ask(db, loop, reports, run_of):
    def run():
        loop.submit([run_of("ask_database", is_async=True, max_attempts=1)])
        ((_, outcome),) = ended(reports, 1)
        return outcome.finished

    yield run
    asyncio.run_coroutine_threadsafe(sync_to_async(connections.close_all)(), loop._loop).result()


def terminate(pid: str) -> None:
    """End a server process, and wait until it has gone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [int(pid)])
        assert cursor.fetchone() == (True,)


def ended(reports, count: int):
    """Return the next outcomes, in the order in which they came."""
    return [reports.get(timeout=SECONDS) for _ in range(count)]


def test_jobs_run_in_order_when_there_is_one_thread(threads, reports, run_of):
    threads.submit([run_of("tests.testapp.tasks.noop", number) for number in (3, 1, 2)])

    done = ended(reports, 3)

    assert [running.id for running, _ in done] == [3, 1, 2]
    assert {outcome.finished.state for _, outcome in done} == {"success"}
    assert len(threads._threads) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_job_does_not_run_when_it_was_taken_back_each_time(threads, reports, run_of, times):
    threads.submit([run_of("wait_at_gate", 1)])
    begun.get(timeout=SECONDS)
    for number in range(times):
        waiting = run_of("wait_at_gate", 2, claim_seq=number + 1)
        threads.submit([waiting])
        assert threads.revoke(waiting)
    threads.submit([run_of("wait_at_gate", 3)])
    gate.set()

    assert [running.id for running, _ in ended(reports, 2)] == [1, 3]


def test_newest_claim_runs_when_an_older_one_was_taken_back(threads, reports, run_of):
    threads.submit([run_of("wait_at_gate", 1)])
    begun.get(timeout=SECONDS)
    old, new = (run_of("wait_at_gate", 2, claim_seq=number) for number in (1, 2))
    threads.submit([old])
    assert threads.revoke(old)
    threads.submit([new])
    gate.set()

    _, (running, _) = ended(reports, 2)
    assert running is new


def test_job_is_not_taken_back_when_it_has_begun(threads, reports, run_of):
    running = run_of("wait_at_gate")
    threads.submit([running])
    begun.get(timeout=SECONDS)

    assert not threads.revoke(running)
    gate.set()
    ((_, outcome),) = ended(reports, 1)
    assert outcome.finished.state == "success"


@pytest.mark.parametrize(
    ("error", "state", "message"),
    [
        (Cancelled, "cancelled", "cancelled while it ran"),
        (TimeLimitExceeded, "error", "its timeout is 0.5 s"),
    ],
)
def test_task_is_stopped_when_it_does_not_look(threads, reports, run_of, error, state, message):
    running = run_of("spin_until_stopped", max_attempts=1, timeout_seconds=0.5)
    threads.submit([running])
    begun.get(timeout=SECONDS)

    threads.interrupt(running, error)

    ((_, outcome),) = ended(reports, 1)
    assert outcome.finished.state == state
    assert message in json.loads(outcome.finished.extra)["error"]["message"]


def test_thread_goes_on_when_a_task_was_stopped(threads, reports, run_of):
    running = run_of("spin_until_stopped", max_attempts=1)
    threads.submit([running])
    begun.get(timeout=SECONDS)
    threads.interrupt(running, Cancelled)
    threads.submit([run_of("tests.testapp.tasks.noop", 8)])

    assert [done.id for done, _ in ended(reports, 2)] == [7, 8]


def test_language_and_time_zone_are_the_defaults_when_the_job_before_activated_others(
    threads, reports, run_of
):
    threads.submit([run_of("go_abroad"), run_of("tests.testapp.tasks.whoami", 8)])

    _, (_, outcome) = ended(reports, 2)
    seen = json.loads(outcome.finished.result)
    assert (seen["language"], seen["time_zone"]) == ("en-us", "UTC")


def test_nothing_happens_when_a_job_is_stopped_that_has_ended(threads, reports, run_of):
    running = run_of("tests.testapp.tasks.noop")
    threads.submit([running])
    ended(reports, 1)

    threads.interrupt(running, Cancelled)
    threads.submit([run_of("tests.testapp.tasks.noop", 8)])

    ((_, outcome),) = ended(reports, 1)
    assert outcome.finished.state == "success"


def test_error_is_its_own_when_a_coroutine_was_cancelled_by_itself(loop, reports, run_of):
    seen_by_retry_when.clear()
    running = run_of("cancel_itself", is_async=True, max_attempts=3, timeout_seconds=60.0)
    loop.submit([running])

    ((_, outcome),) = ended(reports, 1)
    error = json.loads(outcome.finished.extra)["error"]
    assert (error["class"], outcome.finished.state) == (
        "asyncio.exceptions.CancelledError",
        "error",
    )
    assert "a connection was closed" in error["message"]
    assert seen_by_retry_when == [asyncio.CancelledError]


def test_coroutines_run_at_once_when_there_are_many(loop, reports, run_of):
    runs = [run_of("wait_in_loop", number, is_async=True) for number in range(20)]
    loop.submit(runs)
    for _ in runs:
        begun.get(timeout=SECONDS)
    assert not loop.revoke(runs[0])

    for running in runs:
        running.cancel_requested = True
        loop.interrupt(running, Cancelled)

    assert {outcome.finished.state for _, outcome in ended(reports, 20)} == {"cancelled"}


def test_coroutine_may_clean_up_when_it_is_stopped(loop, reports, run_of):
    running = run_of("catch_and_return", is_async=True)
    loop.submit([running])
    begun.get(timeout=SECONDS)

    loop.interrupt(running, TimeLimitExceeded)

    ((_, outcome),) = ended(reports, 1)
    assert outcome.finished.state == "success"
    assert outcome.finished.result == '"cleaned up"'


@pytest.mark.parametrize(("executor", "name"), [("loop", "noop"), ("threads", "async_noop")])
def test_task_that_was_of_the_other_kind_at_the_enqueue_runs(
    request, reports, run_of, executor, name
):
    run = run_of(f"tests.testapp.tasks.{name}", is_async=executor == "loop")
    request.getfixturevalue(executor).submit([run])

    ((_, outcome),) = ended(reports, 1)
    assert outcome.finished.state == "success"


def test_coroutines_use_the_database_again_when_one_has_failed_for_a_lost_connection(
    ask, monkeypatch
):
    monkeypatch.setattr(module, "PROBE_SECONDS", 1e6)
    terminate(ask().result)

    assert ask().state == "error"
    assert ask().state == "success"


@pytest.mark.parametrize("is_lost", [True, False])
def test_connection_of_the_orm_is_tried_and_stays_when_another_coroutine_may_read_from_it(
    ask, monkeypatch, loop, run_of, is_lost
):
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.0)
    waiting = run_of("wait_in_loop", 8, is_async=True)
    loop.submit([waiting])
    begun.get(timeout=SECONDS)
    first = ask().result
    if is_lost:
        terminate(first)

    again = ask()

    assert again.state == "success"
    assert (again.result == first) != is_lost
    waiting.cancel_requested = True
    loop.interrupt(waiting, Cancelled)
