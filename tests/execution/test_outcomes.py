"""A job has an outcome whatever the objects of its task and the receivers of its signals raise."""

from __future__ import annotations

import json
import queue
from typing import Any

import pytest

from django_tenantqueue import Postpone, signals, task
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.outcome import judge
from django_tenantqueue.execution.run import run_sync
from django_tenantqueue.stored_error import describe_error
from django_tenantqueue.worker.child.executors import LoopExecutor
from django_tenantqueue.worker.child.running_jobs import _encode
from tests.event_loop import loop_in_thread

SECONDS = 10.0
CHAIN = 3000


class Unreadable(dict[str, int]):
    """Statistics whose items cannot be read."""

    error: type[BaseException] = KeyError

    def items(self) -> Any:
        raise self.error


class Hidden(BaseException):
    """Neither an Exception nor something that a log can show."""

    @property
    def __notes__(self) -> list[str]:
        raise SystemExit


class Unnamed(type):
    """Makes classes that have no name."""

    def __getattribute__(cls, name: str) -> Any:
        if name == "__qualname__":
            raise SystemExit
        return super().__getattribute__(name)


@task
async def raise_hidden() -> None:
    """Raise what a log cannot show."""
    raise Hidden


@pytest.fixture
def loop():
    with loop_in_thread() as event_loop:
        yield event_loop


@pytest.fixture
def receiver(request):
    """Connect a receiver that raises SystemExit to the signal of that name."""

    def leave(**_: Any) -> None:
        raise SystemExit

    signal = getattr(signals, request.param)
    signal.connect(leave)
    yield
    signal.disconnect(leave)


@pytest.mark.parametrize("error", [KeyError, SystemExit])
def test_progress_is_left_out_when_reading_statistics_raises(error, monkeypatch):
    monkeypatch.setattr(Unreadable, "error", error)

    assert _encode({"stats": {"rows": Unreadable(a=1)}}) is None


def test_coroutine_has_an_outcome_when_a_log_cannot_show_its_error(loop, claimed_job):
    reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
    executor = LoopExecutor(loop, lambda running, outcome: reports.put(outcome))
    name = raise_hidden.name
    executor.submit(
        [RunningJob(claimed_job(task=name, source_method=name, is_async=True, max_attempts=1))]
    )

    outcome = reports.get(timeout=SECONDS)

    assert json.loads(outcome.finished.extra)["error"]["class"] == f"{__name__}.Hidden"


@pytest.mark.parametrize("receiver", ["job_finished"], indirect=True)
@pytest.mark.usefixtures("receiver")
def test_success_stands_when_a_receiver_raises_what_is_no_exception(claimed_job):
    outcome = run_sync(RunningJob(claimed_job()), 1)

    assert outcome.finished.state == "success"


@pytest.mark.parametrize("receiver", ["job_retried"], indirect=True)
@pytest.mark.usefixtures("receiver")
def test_job_is_retried_when_a_receiver_raises_what_is_no_exception(claimed_job):
    outcome = judge(RunningJob(claimed_job()), None, ValueError("no"))

    assert outcome.failed is not None


def odd_errors() -> list[BaseException]:
    chain: BaseException = ValueError("first")
    first = chain
    for number in range(CHAIN):
        following = ValueError(number)
        following.__context__ = chain
        chain = following
    first.__cause__ = chain  # a circle
    numbered = type("Numbered", (Exception,), {"__module__": 5})
    return [
        chain,
        ValueError("a\x00b\ud800"),
        numbered("no"),
        Unnamed("Anonymous", (Exception,), {})("no"),
    ]


@pytest.mark.parametrize("number", range(4))
def test_error_is_described_when_its_chain_text_or_class_is_odd(number):
    described = describe_error(odd_errors()[number], 1)

    json.dumps(described, ensure_ascii=False).encode()
    assert "\x00" not in "".join(str(value) for value in described.values())


def test_postponed_job_is_given_back(claimed_job):
    running = RunningJob(claimed_job())

    outcome = judge(running, None, Postpone("the endpoint rests", after=15))

    assert outcome.give_back == 15
    assert json.loads(outcome.reason or "")["message"] == "the endpoint rests"


def test_postponed_job_ends_when_its_cancellation_was_requested(claimed_job):
    running = RunningJob(claimed_job())
    running.cancel_requested = True

    outcome = judge(running, None, Postpone(after=15))

    assert outcome.finished is not None
