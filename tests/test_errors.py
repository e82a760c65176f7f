"""Errors say what was wrong, the rule, and the way out; programs read their attributes."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import django_tenantqueue
from django_tenantqueue import Permanent, Postpone, Retry, exceptions
from django_tenantqueue.contrib.http.exceptions import HttpJobFailed, HttpJobRejected
from django_tenantqueue.models import Job
from django_tenantqueue.stored_error import describe_error
from tests.testapp.tasks import noop

NEEDS = "http"

PACKAGE = Path(django_tenantqueue.__file__).parent
FOR_PEOPLE = (
    *("InvalidArgument", "InvalidOption", "InvalidResult", "InvalidState", "JobNotFound"),
    *("JobReadOnly", "NotAllowed", "UnknownQueue", "UnknownTask", "Unsupported"),
)
"""Exceptions whose messages are read by the one who has made the mistake."""
SHORT = {
    "{} {}": "the value, and the message of an error about it",
}
"""Messages with one clause, and why that is enough."""
SECRET = ("headers:", "url:", "payload:", "TENANTQUEUE['METRICS']", "TENANTQUEUE['HTTP']['SEC")
"""What messages begin with that must not show the value: it may be secret."""


def text_of(node: ast.expr) -> str | None:
    """Return a text in the code, with {} for what is put in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
    if isinstance(node, ast.BinOp):
        left = text_of(node.left)
        return None if left is None else f"{left}{{}}"
    return None


def messages() -> Iterator[tuple[str, str]]:
    """Yield where an error for people is raised, and its message."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = getattr(node.exc.func, "id", "")
                text = next(filter(None, map(text_of, node.exc.args)), None)
                if name in FOR_PEOPLE and text is not None:
                    yield f"{path.relative_to(PACKAGE)}:{node.lineno}", text


def test_messages_have_a_rule_or_a_way_out() -> None:
    clauses = re.compile(r"[:;,] |[.}] [A-Z{]|\?")
    found = [(at, text) for at, text in messages() if not text.startswith(SECRET)]

    assert [each for each in found if not clauses.search(each[1]) and each[1] not in SHORT] == []


def test_messages_name_what_is_wrong() -> None:
    names_something = re.compile(r"[{'=]|\w\(\)")
    vague = {
        text
        for _, text in messages()
        if not names_something.search(text) and not text.startswith(SECRET)
    }

    # the first are said of a row that is named before, the others of the call itself
    begin = ("it ", "its ", "solar schedules", "a group", "cron ")
    assert [text for text in vague if not text.startswith(begin)] == []


# attributes


@pytest.mark.parametrize(
    ("options", "option", "value"),
    [
        ({"priority": "high"}, "priority", "high"),
        ({"queue": ""}, "queue", ""),
        ({"run_at": "now"}, "run_at", "now"),
        ({"executor": "none"}, "executor", None),
        ({"priorty": 1}, "priorty", None),
        ({"countdown": 1}, "countdown", None),
    ],
)
def test_wrong_option_is_an_attribute(options, option, value):
    with pytest.raises(exceptions.InvalidOption) as caught:
        noop.using(**options)

    assert (caught.value.option, caught.value.value) == (option, value)


@pytest.mark.parametrize(
    "error",
    [
        exceptions.InvalidOption("no", option="queue", value="x"),
        exceptions.UnknownQueue("no", tenant="acme", queue="mail"),
        exceptions.UnknownTask("no", name="x"),
        exceptions.QueueRetired("acme", "mail"),
        exceptions.QueueFull("acme", "mail", 5, 2),
        exceptions.DuplicateJob(3, "k"),
        exceptions.JobNotFound("no", job_id=3),
        exceptions.MonitorEnded(3, "import"),
        exceptions.WaitTimeout(3, "ready", 1.5),
        exceptions.WaitTimeout(3, "ready", 1.5, True, "monitor 7", "0 of 2 details have ended"),
        Retry("later", after=3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_survives_pickling(error):
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@pytest.mark.django_db
def test_job_that_is_gone_is_named():
    job = Job(id=7)

    with pytest.raises(exceptions.JobNotFound, match="job 7 does not exist any more") as caught:
        job.refresh()

    assert caught.value.job_id == 7


def test_postponement_is_no_retry():
    error = Postpone("closed", after=timedelta(minutes=5))

    assert not isinstance(error, Retry)
    assert error.after_seconds == 300


@pytest.mark.parametrize("kind", [Retry, Postpone])
@pytest.mark.parametrize("after", [-1, 4e9])
def test_wait_is_checked(kind, after):
    with pytest.raises(exceptions.InvalidOption, match=rf"{kind.__name__}\(after=.*between 0 and"):
        kind(after=after)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (HttpJobFailed("no", answer={"status": 500, "message": ""}), True),
        (HttpJobRejected("no", answer={"status": 400, "message": ""}), True),
        (HttpJobFailed("no"), False),
        (Permanent("no"), False),
    ],
)
def test_answer_of_an_endpoint_is_stored(error, answer):
    assert ("answer" in describe_error(error, 1)) is answer


@pytest.mark.parametrize("name", ["WorkerDied", "HardTimeLimitExceeded", "MemoryLimitExceeded"])
def test_name_of_an_error_that_is_never_raised_says_where_it_is(name):
    with pytest.raises(ImportError, match=r"django_tenantqueue\.stored_error\.[A-Z_]+, a text"):
        getattr(exceptions, name)
