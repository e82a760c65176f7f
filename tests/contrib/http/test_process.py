"""HTTP jobs of real workers: each ends as its rule says, also when the worker is killed."""

import random
import signal
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
from django.db import connection

from benchmarks.receiver import Received, Receiver, Reply
from django_tenantqueue.contrib.http import http_job
from tests.process.tasks import leave_open, postpone
from tests.process.workers import Gate, Workers, make_queue, wait_for_end, wait_until
from tests.timing import assert_within

SETTINGS = {
    "HTTP": {"ALLOWED_HOSTS": ["127.0.0.1"], "TIMEOUT": 1.0},
    "BACKOFF_BASE": 0.05,
    "POLL_INTERVAL": 0.1,
}
JOBS = 1000
SLOTS = ("--async-slots", "200")
PERMANENT = 7


@pytest.mark.heavy
def test_every_job_ends_as_the_rule_says_when_answers_fail(workers: Workers):
    """One answer in 100 is a 500, one in 200 never comes, one in 500 is cut."""
    replies = [
        *[Reply(500)] * 10,
        *[Reply(after=None)] * 5,
        *[Reply(body=b"{", cut=True)] * 2,
        *[Reply(after=0.01)] * 983,
    ]
    random.Random(4).shuffle(replies)
    said: dict[str, list[bool]] = {}

    def answer(received: Received) -> Reply:
        if received.path == "/gone":
            return Reply(410)
        reply = Reply(after=0.01) if received.webhook_id in said else replies.pop()
        is_whole = reply.status == 200 and reply.after is not None and not reply.cut
        said.setdefault(received.webhook_id, []).append(200 if is_whole else 0)
        return reply

    with Receiver(answer) as receiver:
        make_queue("acme", num_slots=None)
        url = f"http://127.0.0.1:{receiver.port}"
        calls = [(f"{url}/hook", {"n": number}) for number in range(JOBS)]
        ids = http_job.using(tenant="acme").enqueue_many(calls)
        gone = http_job.using(tenant="acme").enqueue_many([f"{url}/gone"] * PERMANENT)
        workers.start(*SLOTS, settings=SETTINGS)
        jobs = wait_for_end(ids)
        ended = wait_for_end(gone)

    assert Counter(job.state for job in jobs) == {"success": JOBS}
    assert [(job.state, job.attempt) for job in ended] == [("error", 1)] * PERMANENT
    assert set(said) == {f"job_{job_id}" for job_id in ids}
    for job in jobs:
        sent = said[f"job_{job.pk}"]
        assert len(sent) == job.attempt  # nothing was posted after the success
        assert sent[-1]
        # an answer that was sent may have come too late on a busy machine
        messages = [error["message"] for error in job.errors or []]
        assert all("no answer within" in messages[n] for n, whole in enumerate(sent[:-1]) if whole)
    assert sum(len(sent) > 1 for sent in said.values()) == 17
    assert 20 < receiver.most["/hook"] <= 200


@pytest.mark.heavy
def test_another_worker_repeats_500_requests_with_their_ids_after_a_kill(workers: Workers):
    hold = True

    def answer(received: Received) -> Reply:
        return Reply(after=None) if hold else Reply()

    with Receiver(answer) as receiver:
        make_queue("acme", num_slots=None)
        url = f"http://127.0.0.1:{receiver.port}/hook"
        settings = {**SETTINGS, "HTTP": {"ALLOWED_HOSTS": ["127.0.0.1"], "TIMEOUT": 60.0}}
        first = workers.start("--async-slots", "500", settings=settings)
        ids = http_job.using(tenant="acme").enqueue_many([url] * 500)
        wait_until(lambda: len(receiver.ids) == len(ids), what="all are in flight")
        second = workers.start("--async-slots", "500", settings=settings)
        second.wait_until_signed_on(1)

        (killed_at,) = read_clock()
        first.send_all(signal.SIGKILL)
        hold = False
        jobs = wait_for_end(ids)

    assert Counter(job.state for job in jobs) == {"success": len(ids)}
    assert receiver.ids == dict.fromkeys((f"job_{job_id}" for job_id in ids), 2)
    assert_within(8, max(job.queued_at for job in jobs) - killed_at)


def read_clock() -> tuple[datetime]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()


def test_connections_are_kept_and_closed_at_the_end(workers: Workers, tmp_path: Path):
    headers = []

    def answer(received: Received) -> Reply:
        headers.append(received.headers)
        return Reply(headers={"Set-Cookie": "tenant=acme"})

    with Receiver(answer) as receiver:
        url = f"http://127.0.0.1:{receiver.port}/hook"
        runner = workers.start(settings=SETTINGS)
        for _ in range(3):
            wait_for_end([http_job.delay(url).pk])
        # by what closes the connections, too
        wait_for_end([leave_open.delay(str(tmp_path / "closed")).pk])

        runner.send(signal.SIGTERM)
        assert runner.end() == 0
        wait_until(lambda: not receiver.connections, what="the connection was closed")

    assert receiver.connections_made == 1
    assert not any("cookie" in sent for sent in headers)  # they belong to one tenant
    assert "Unclosed" not in runner.output
    assert (tmp_path / "closed").exists()


def test_postponed_job_loses_no_attempt(workers: Workers, gate: Gate):
    workers.start(settings=SETTINGS)
    job = postpone.using(max_attempts=1, session="s").delay(str(gate))
    wait_until(lambda: job.refresh().last_error, what="the job is postponed")
    gate.open()

    wait_for_end([job.pk])

    assert (job.refresh().state, job.attempt) == ("success", 1)
    assert [error["class"].rpartition(".")[2] for error in job.errors] == ["Postpone"]
