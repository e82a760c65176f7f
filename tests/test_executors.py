"""What a dispatcher sends again, gives back and waits for, without a broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from django_tenantqueue import executors
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.executors import Claim, RemoteExecutor, load_executor
from tests.process.workers import wait_until


class Broker(RemoteExecutor):
    """Keeps what is sent."""

    def __init__(self) -> None:
        super().__init__("fake", {})
        self.messages: list[int] = []
        self.given_back: list[int] = []
        self.is_down = False
        self.pings = 0

    def send(self, claims: Sequence[Claim]) -> None:
        if self.is_down:
            raise ConnectionError("no broker")
        self.messages += [claim.job_id for claim in claims]

    def ping(self) -> None:
        self.pings += 1
        if self.is_down:
            raise ConnectionError("no broker yet")

    def send_jobs(self, *ids: int) -> None:
        for number in ids:
            before = len(self.messages)
            self.submit([job(number)])
            wait_until(lambda before=before: len(self.messages) > before, what="it is sent")
            wait_until(lambda number=number: self._sent[number].at, what="it is noted")


def job(number: int) -> Any:
    claimed = SimpleNamespace(claim_seq=1, timeout_seconds=None, hard_timeout_seconds=None)
    return SimpleNamespace(id=number, _claimed=claimed)


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    made.start(1, lambda running: made.given_back.append(running.id))
    yield made
    made.close()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> float:
    return executors.time.monotonic() + 3 * executors.RESEND_SECONDS


def test_messages_are_sent_again_when_a_later_one_was_taken(broker: Broker, later: float):
    broker.send_jobs(1, 2, 3, 4)
    broker.taken(job(3))

    assert broker.resend_late(later) == 2
    wait_until(lambda: broker.messages == [1, 2, 3, 4, 1, 2])


def test_no_message_is_sent_again_before_its_time(broker: Broker):
    broker.send_jobs(1, 2)
    broker.taken(job(2))

    assert broker.resend_late(executors.time.monotonic()) == 0


def test_only_the_oldest_is_sent_again_while_nothing_is_taken(broker: Broker, later: float):
    broker.send_jobs(1, 2, 3)

    assert broker.resend_late(later) == 1
    wait_until(lambda: broker.messages == [1, 2, 3, 1])


def test_time_to_the_next_message_doubles(broker: Broker):
    broker.send_jobs(1)
    sent = broker._sent[1]
    for times, wait in ((1, 1), (2, 2), (3, 4)):
        sent.times = times
        assert not sent.is_due(sent.at + wait * executors.RESEND_SECONDS - 0.01)
        assert sent.is_due(sent.at + wait * executors.RESEND_SECONDS)


def test_jobs_are_given_back_until_the_broker_answers(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(executors, "PAUSES", (0.01,))
    broker.is_down = True
    broker.submit([job(1), job(2)])
    wait_until(lambda: broker.given_back == [1, 2])
    wait_until(lambda: broker.pings >= 2)
    assert not broker.is_up
    assert "no broker" in broker.error

    broker.is_down = False
    wait_until(lambda: broker.is_up)
    broker.send_jobs(3)
    assert broker.messages == [3]


def test_job_that_waits_too_long_to_be_sent_is_stuck():
    broker = Broker()  # its thread does not run
    waiting = job(1)
    broker.submit([waiting])
    now = executors.time.monotonic()

    assert broker.stuck(now) == []
    assert broker.stuck(now + executors.SEND_SECONDS + 1) == [waiting]


def test_claim_is_read_as_it_was_written():
    claim = Claim(7, 8, 9)

    assert Claim.parse(str(claim)) == claim
    with pytest.raises(ValueError, match="unpack"):
        Claim.parse("7:8")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({}, "has no executor 'x': it has none"),
        ({"x": {"BACKEND": "no.such.Thing"}}, "cannot be imported"),
        ({"x": {"BACKEND": "collections.deque"}}, "is not a subclass"),
    ],
)
def test_executor_that_cannot_be_used_is_named(entries: dict[str, Any], said: str, settings: Any):
    settings.TENANTQUEUE = {"EXECUTORS": entries}

    with pytest.raises(InvalidOption, match=said):
        load_executor("x")
