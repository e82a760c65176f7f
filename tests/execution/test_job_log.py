"""The log about jobs: fields on each record, one record for each end, and short tracebacks."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from django_tenantqueue import Permanent, Postpone, Retry, task
from django_tenantqueue.execution import job_log
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.outcome import Outcome, judge
from django_tenantqueue.execution.run import run_sync
from django_tenantqueue.states import EARLIEST
from django_tenantqueue.worker.child.executors import logged

LOGGER = "django_tenantqueue"


class Unprintable(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise SystemExit


@task
def fail_here() -> None:
    """Fail in this file."""
    raise ValueError("line one\nline two")


@task
def fail_on_purpose() -> None:
    """Fail as a task does that knows why."""
    raise Permanent("no such customer")


@task
def fail_unprintably() -> None:
    """Fail with what no log can show."""
    raise Unprintable


@task(retry_when=lambda error: 1 / 0)
def fail_with_broken_rule() -> None:
    """Fail, and so does the rule of the task."""
    raise ValueError("no")


@pytest.fixture(autouse=True)
def worker() -> Iterator[str]:
    job_log.name_worker("web-1.1")
    yield "web-1.1"
    job_log.name_worker("")


def run_of(claimed: Any, **columns: Any) -> RunningJob:
    return RunningJob(claimed(**columns), tenant="acme", queue="reports")


def ran(made_by: Any, claimed: Any, **columns: Any) -> Outcome:
    running = run_of(claimed, task=made_by.name, source_method=made_by.name, **columns)
    return run_sync(running, 1)


def fields(record: logging.LogRecord) -> dict[str, Any]:
    names = ("job", "tenant", "queue", "task", "attempt", "worker", "outcome")
    return {name: getattr(record, name) for name in names if hasattr(record, name)}


def test_retry_is_one_warning_with_the_fields_of_the_job(claimed_job, caplog):
    ran(fail_here, claimed_job)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert fields(record) == {
        "job": 7,
        "tenant": "acme",
        "queue": "reports",
        "task": fail_here.name,
        "attempt": 1,
        "worker": "web-1.1",
        "outcome": "retried",
    }
    assert record.duration >= 0
    said = re.escape(f"job 7 ({fail_here.name}) failed in attempt 1 of 5, retrying in ")
    assert re.fullmatch(
        said + r"\d+\.\d s: ValueError\('line one\\nline two'\)",
        record.getMessage(),
    )


def test_final_failure_is_one_error(claimed_job, caplog):
    ran(fail_here, claimed_job, attempt=5)

    (record,) = caplog.records
    assert (record.levelno, record.outcome) == (logging.ERROR, "error")
    assert "failed in attempt 5 of 5, not retried" in record.getMessage()


def test_traceback_is_logged_once_without_the_frames_of_the_worker(claimed_job, caplog):
    ran(fail_here, claimed_job)

    assert caplog.text.count("Traceback") == 1
    assert "execution/run.py" not in caplog.text
    assert re.search(r"^  … \d+ frames of the worker …$", caplog.text, re.MULTILINE)
    assert 'raise ValueError("line one\\nline two")' in caplog.text
    (record,) = caplog.records
    assert record.exc_info[1].__traceback__ is not None, "for those who read it themselves"


@pytest.mark.parametrize("error", [ValueError, Permanent, Retry, partial(Postpone, after=1)])
def test_message_is_cut_when_it_is_long(error, claimed_job, caplog):
    with caplog.at_level(logging.INFO):
        judge(run_of(claimed_job), None, error("long " * 100_000))

    (record,) = caplog.records
    assert len(caplog.text) < 30_000
    assert "long" in record.getMessage()


@pytest.mark.parametrize("error", [Permanent("no"), Retry("later")])
def test_what_a_task_raises_on_purpose_has_no_traceback(error, claimed_job, caplog):
    judge(run_of(claimed_job), None, error)

    assert "Traceback" not in caplog.text
    assert len(caplog.records) == 1


def test_error_that_cannot_be_shown_is_logged_by_its_class(claimed_job, caplog):
    outcome = ran(fail_unprintably, claimed_job, attempt=5)

    assert outcome.finished is not None
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert f"{__name__}.Unprintable" in record.getMessage()


def test_traceback_is_logged_once_when_the_rule_of_the_task_fails(claimed_job, caplog):
    ran(fail_with_broken_rule, claimed_job)

    told = [record.getMessage() for record in caplog.records]
    assert told[0] == f"retry_when or backoff of job 7 ({fail_with_broken_rule.name}) failed"
    assert "failed in attempt 1 of 5, not retried: ZeroDivisionError" in told[1]
    assert [bool(record.exc_info) for record in caplog.records] == [False, True]


def test_failure_is_judged_when_a_filter_of_the_project_raises(claimed_job, capsys):
    def broken(record: logging.LogRecord) -> bool:
        raise SystemExit

    logger = logging.getLogger(LOGGER)
    logger.addFilter(broken)
    try:
        outcome = ran(fail_here, claimed_job)
        logged(lambda *_: None)(run_of(claimed_job), Outcome(stored=True))
    finally:
        logger.removeFilter(broken)

    assert outcome.failed is not None
    assert "the end of job 7" in capsys.readouterr().err


def test_nothing_is_logged_of_a_success_when_it_is_not_asked_for(claimed_job, caplog):
    caplog.set_level(logging.DEBUG, LOGGER)

    assert run_sync(run_of(claimed_job), 1).finished is not None

    assert not caplog.records


@pytest.mark.parametrize(
    ("stored", "columns", "state"),
    [
        (False, {}, "success"),
        (True, {}, "success"),  # an atomic task has stored its end
        (False, {"expires_at": EARLIEST}, "cancelled"),
    ],
)
def test_end_is_one_line_when_it_is_asked_for(columns, stored, state, claimed_job, caplog):
    caplog.set_level(logging.INFO, LOGGER)
    reported: list[Any] = []
    report = logged(lambda *what: reported.append(what))
    running = run_of(claimed_job, **columns)
    outcome = run_sync(running, 1)

    report(running, Outcome(stored=True) if stored else outcome)

    assert len(reported) == 1
    (record,) = caplog.records
    assert (record.levelno, record.outcome, record.job) == (logging.INFO, state, 7)
    assert record.duration == pytest.approx(running.age_seconds, abs=1e-6)
    said = re.escape(f"job 7 ({running.task}) ended in {state} after ")
    assert re.fullmatch(said + r"\d+\.\d{3} s", record.getMessage())


def test_failure_has_no_second_line_when_ends_are_logged(claimed_job, caplog):
    caplog.set_level(logging.INFO, LOGGER)
    running = run_of(claimed_job, task=fail_here.name, source_method=fail_here.name)

    logged(lambda *_: None)(running, run_sync(running, 1))

    assert [record.levelno for record in caplog.records] == [logging.WARNING]
