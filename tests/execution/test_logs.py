"""What a project's LOGGING takes from here: the formatter of JSON, and the filter of jobs."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import logging.config
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_tenantqueue import current_job, task
from django_tenantqueue.execution import job_log
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.run import run_async, run_sync
from django_tenantqueue.logs import JOB_FIELDS, JobFilter, JSONFormatter

own = logging.getLogger("tests.shop")


@task
def log_something() -> None:
    """Log by a logger of the project's own."""
    own.warning("in job %s", current_job().id, extra={"queue": "mine"})


@task
async def log_in_a_coroutine() -> None:
    """Log by a logger of the project's own."""
    own.warning("in a coroutine")


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Log as a project's LOGGING says; return what was written."""
    stream = io.StringIO()
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "filters": {"job": {"()": "django_tenantqueue.logs.JobFilter"}},
            "formatters": {"json": {"()": "django_tenantqueue.logs.JSONFormatter"}},
            "handlers": {
                "memory": {
                    "class": "logging.StreamHandler",
                    "formatter": "json",
                    "filters": ["job"],
                    "stream": stream,
                }
            },
            "loggers": {
                name: {"handlers": ["memory"], "level": "INFO", "propagate": False}
                for name in ("tests.shop", "django_tenantqueue")
            },
        }
    )
    job_log.name_worker("web-1.1")
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    job_log.name_worker("")
    for name in ("tests.shop", "django_tenantqueue"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)


def record(message: str = "hello", **extra: Any) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": message, "levelname": "INFO", "name": "shop"})
    vars(made).update(extra)
    return made


def written(**extra: Any) -> dict[str, Any]:
    text = JSONFormatter().format(record(**extra))
    assert "\n" not in text
    return json.loads(text)


def running(claimed: Any, made_by: Any, **columns: Any) -> RunningJob:
    return RunningJob(
        claimed(task=made_by.name, source_method=made_by.name, **columns),
        tenant="acme",
        queue="reports",
    )


def test_records_of_a_tasks_own_code_have_the_fields_of_its_job(lines, claimed_job):
    run_sync(running(claimed_job, log_something), 1)

    (line,) = lines()
    assert line["message"] == "in job 7"
    assert {name: line[name] for name in JOB_FIELDS} == {
        "job": 7,
        "tenant": "acme",
        "queue": "mine",  # it said so itself
        "task": log_something.name,
        "attempt": 1,
        "worker": "web-1.1",
    }


def test_records_of_a_coroutine_have_them_too(lines, claimed_job):
    asyncio.run(run_async(running(claimed_job, log_in_a_coroutine, is_async=True)))

    assert [line["job"] for line in lines()] == [7]


def test_records_outside_a_job_have_the_worker_alone(lines):
    own.warning("outside")

    (line,) = lines()
    assert line["worker"] == "web-1.1"
    assert not set(line) & (set(JOB_FIELDS) - {"worker"})


def test_format_may_name_the_fields_when_no_job_runs():
    made = record()

    assert JobFilter().filter(made) is True

    assert logging.Formatter("%(job)s|%(tenant)s|%(message)s").format(made) == "||hello"


def test_line_has_the_time_the_level_and_what_was_given():
    line = written(order=5, total=1.5, created=1700000000.25)

    assert line == {
        "time": "2023-11-14T22:13:20.250+00:00",
        "level": "INFO",
        "logger": "shop",
        "message": "hello",
        "order": 5,
        "total": 1.5,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        ({1, 2}, "{1, 2}"),
        ("a\nb\x00\ud800", "a\nb\x00\ud800"),
    ],
)
def test_value_that_is_no_json_is_written_as_text(value, expected):
    assert written(odd=value)["odd"] == expected


def test_value_within_itself_and_one_without_a_text_are_written():
    class Silent:
        def __str__(self) -> str:
            raise ValueError

    circle: list[Any] = []
    circle.append(circle)

    line = written(circle=circle, silent=Silent())

    assert line["circle"] == "[[...]]"
    assert line["silent"].endswith("Silent that cannot be shown>")


def test_attribute_cannot_take_the_place_of_the_message():
    line = written(level="x", time="y")

    assert (line["level"], line["message"]) == ("INFO", "hello")


def test_fields_that_are_named_are_written_alone():
    text = JSONFormatter(fields=["job"]).format(record(job=1, tenant="acme", other=2))

    assert set(json.loads(text)) == {"time", "level", "logger", "message", "job"}


def test_traceback_is_one_value():
    try:
        raise ValueError("no")
    except ValueError:
        made = logging.LogRecord("shop", 40, __file__, 1, "it failed", (), sys.exc_info())

    line = json.loads(JSONFormatter().format(made))

    assert line["traceback"].startswith("Traceback (most recent call last):\n")
    assert line["traceback"].endswith("ValueError: no")


def test_module_can_be_imported_before_the_apps_are_loaded():
    code = (
        "import logging; from django_tenantqueue.logs import JobFilter, JSONFormatter;"
        "made = logging.makeLogRecord({'msg': 'early'}); JobFilter().filter(made);"
        "print(JSONFormatter().format(made))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout)["message"] == "early"
