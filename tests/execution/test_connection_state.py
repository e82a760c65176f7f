"""What a job leaves in its thread and on its connections is not there for the next one."""

from __future__ import annotations

import contextvars
import decimal
import json
import queue
import signal
import threading
from concurrent.futures import Future
from typing import Any

import pytest
from django.core.cache import caches
from django.db import connection, connections, transaction
from django.db.backends.signals import connection_created

from django_tenantqueue import task
from django_tenantqueue.exceptions import TransactionLeftOpen
from django_tenantqueue.execution import current_job as current
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.worker.child import executors
from django_tenantqueue.worker.child.executors import ThreadExecutor
from django_tenantqueue.worker.child.orm_thread import OrmThread
from tests.testapp.models import Report

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 10.0
kept: list[Any] = []
secret: contextvars.ContextVar[str] = contextvars.ContextVar("secret", default="none")


def sql(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone() if cursor.description else None


@task
def ask_backend() -> int:
    """Return which process of the server this thread's connection has."""
    return sql("SELECT pg_backend_pid()")[0]


@task
def listen() -> int:
    """Listen, and return the same."""
    sql("LISTEN kept")
    return sql("SELECT pg_backend_pid()")[0]


@task
def leave_block() -> None:
    """Leave an atomic block open."""
    transaction.atomic().__enter__()
    Report.objects.create(title="left")


@task
def leave_begin() -> None:
    """Leave a transaction open that Django does not know of."""
    sql("BEGIN")
    Report.objects.create(title="left")


@task
def leave_autocommit_off() -> None:
    """Turn autocommit off."""
    transaction.set_autocommit(False)


@task(atomic=True)
def leave_inner_block() -> None:
    """Leave a block open inside the transaction of the job."""
    transaction.atomic().__enter__()
    Report.objects.create(title="left")


@task(atomic=True)
def leave_copy() -> None:
    """Leave a COPY under way inside the transaction of the job."""
    cursor = connection.connection.cursor()
    copy = cursor.copy("COPY testapp_report (title, rows) FROM STDIN")
    copy.__enter__()
    kept.append((cursor, copy))


@task(atomic=True)
def fail_after_the_commit() -> None:
    """Have a hook that fails when the job has been stored."""
    transaction.on_commit(lambda: kept[0])


@task
def fail_inside() -> None:
    """Leave a block open and raise."""
    transaction.atomic().__enter__()
    raise ValueError("a mistake")


@task
def leave_session() -> int:
    """Change the session in the server and Django's object of it."""
    sql("SET search_path = pg_catalog")
    sql("SET statement_timeout = 12345")
    sql("SELECT pg_advisory_lock(4711)")
    connection.execute_wrapper(lambda *_: None).__enter__()
    return connection.connection.info.backend_pid


@task
def set_timeout() -> None:
    """Change one setting of the session."""
    sql("SET statement_timeout = 12345")


@task
def leave_thread() -> None:
    """Change what is current in the thread."""
    secret.set("mine")
    decimal.getcontext().prec = 3
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])


@task
def look() -> dict[str, Any]:
    """Return what a job finds."""
    found = sql(
        "SELECT current_setting('search_path'), current_setting('statement_timeout'), "
        "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711)"
    )
    return {
        "session": list(found),
        "pid": connection.connection.info.backend_pid,
        "secret": secret.get(),
        "precision": decimal.getcontext().prec,
        "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "cache": id(caches["default"]),
        "thread": threading.get_ident(),
    }


@task
def always_fail() -> None:
    """Fail."""
    raise ValueError("no")


class Runner:
    """Runs tasks in the one thread of an executor."""

    def __init__(self, claimed_job: Any) -> None:
        self.claimed_job = claimed_job
        self.reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.executor = ThreadExecutor(1, 1, lambda _, outcome: self.reports.put(outcome))

    def __call__(self, made: Any) -> Any:
        name = made.name
        self.executor.submit(
            [RunningJob(self.claimed_job(id=7, task=name, source_method=name, max_attempts=1))]
        )
        return self.reports.get(timeout=SECONDS).finished


@pytest.fixture
def run(claimed_job, django_db_blocker):
    with django_db_blocker.unblock():
        made = Runner(claimed_job)
        yield made
        made.executor.stop()
        for thread in made.executor._threads:
            thread.join(SECONDS)


@pytest.fixture(params=[0, 60])
def max_age(request, monkeypatch):
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", request.param)
    return request.param


@pytest.mark.parametrize(
    ("bad", "left"),
    [
        (leave_block, "1 atomic block open"),
        (leave_begin, "a transaction open"),
        (leave_autocommit_off, "autocommit turned off"),
        (leave_inner_block, "1 atomic block open"),
        (leave_copy, "a COPY or a stream under way"),
    ],
)
def test_run_has_failed_when_it_leaves_a_transaction_open(run, max_age, bad, left):
    ended = run(bad)

    error = json.loads(ended.extra)["error"]
    assert ended.state == "error"
    assert error["class"] == "django_tenantqueue.exceptions.TransactionLeftOpen"
    assert f"the task left {left}" in error["message"]
    assert run(look).state == "success"
    assert not Report.objects.filter(title="left").exists()


def test_error_of_the_task_is_kept_when_it_left_a_block_open_too(run, max_age):
    assert json.loads(run(fail_inside).extra)["error"]["message"] == "a mistake"
    assert run(look).state == "success"


def test_session_is_as_new_when_the_connection_is_kept(run, monkeypatch):
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", 60)
    pid = json.loads(run(leave_session).result)

    found = json.loads(run(look).result)

    assert found["session"] == ['"$user", public', "0", 0]
    assert found["pid"] == pid


def test_session_is_set_up_as_the_project_does_when_it_was_reset(run, monkeypatch):
    def set_up(connection: Any, **_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 54321")

    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", 60)
    connection_created.connect(set_up)
    try:
        run(leave_session)
        assert json.loads(run(look).result)["session"][1] == "54321ms"
    finally:
        connection_created.disconnect(set_up)


def test_session_stays_when_connections_are_not_reset(run, monkeypatch, settings):
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "RESET_CONNECTIONS": False}
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", 60)

    run(set_timeout)

    assert json.loads(run(look).result)["session"][1] == "12345ms"


def test_thread_is_as_new_after_a_job(run):
    before = json.loads(run(look).result)

    assert run(leave_thread).state == "success"

    after = json.loads(run(look).result)
    for what in ("secret", "precision", "blocked", "cache", "thread"):
        assert after[what] == before[what]


def test_thread_is_replaced_when_jobs_fail_in_it_at_once(run, monkeypatch, caplog):
    monkeypatch.setattr(executors, "MOST_FAILURES", 3)
    first = json.loads(run(look).result)["thread"]
    with caplog.at_level("WARNING", logger="django_tenantqueue"):
        for _ in range(3):
            run(always_fail)

        assert json.loads(run(look).result)["thread"] != first
    assert [r for r in caplog.records if "thread 0 is replaced" in r.getMessage()]


def call(thread: OrmThread, job: RunningJob, func: Any) -> Any:
    def submitted() -> Future[Any]:
        current._current.set(job)
        return thread.submit(func)

    return contextvars.copy_context().run(submitted).result(SECONDS)


@pytest.fixture
def orm_thread():
    made = OrmThread()
    yield made
    made.submit(connections.close_all).result(SECONDS)
    made.shutdown()


def end_backend(pid: int) -> None:
    """Have the server end a connection, and wait until it has."""
    sql(f"SELECT pg_terminate_backend({pid}, 10000)")


def test_job_meets_no_ended_connection_when_the_server_has_ended_a_kept_one(run, monkeypatch):
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", 600)
    first = json.loads(run(ask_backend).result)
    assert json.loads(run(ask_backend).result) == first

    end_backend(first)
    ended = run(ask_backend)

    assert ended.state == "success"
    assert json.loads(ended.result) != first


def test_connection_is_kept_when_it_has_only_been_notified(run, monkeypatch, settings):
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "RESET_CONNECTIONS": False}
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", 600)
    first = json.loads(run(listen).result)

    sql("NOTIFY kept")

    assert json.loads(run(ask_backend).result) == first


def test_coroutine_meets_no_ended_connection_when_the_server_has_ended_it(orm_thread, claimed_job):
    job = RunningJob(claimed_job(id=1))
    (first,) = call(orm_thread, job, lambda: sql("SELECT pg_backend_pid()"))

    end_backend(first)

    assert call(orm_thread, job, lambda: sql("SELECT pg_backend_pid()")) != (first,)


def test_call_of_a_coroutine_fails_when_it_leaves_a_transaction_open(orm_thread, claimed_job):
    one, other = RunningJob(claimed_job(id=1)), RunningJob(claimed_job(id=2))

    with pytest.raises(TransactionLeftOpen, match="1 atomic block open"):
        call(orm_thread, one, lambda: transaction.atomic().__enter__())

    assert call(orm_thread, other, lambda: connection.in_atomic_block) is False


def test_coroutine_finds_the_session_as_new_when_another_changed_it(orm_thread, claimed_job):
    one, other = RunningJob(claimed_job(id=1)), RunningJob(claimed_job(id=2))
    call(orm_thread, one, lambda: sql("SET statement_timeout = 12345"))
    assert call(orm_thread, one, lambda: sql("SHOW statement_timeout")) == ("12345ms",)

    assert call(orm_thread, other, lambda: sql("SHOW statement_timeout")) == ("0",)
