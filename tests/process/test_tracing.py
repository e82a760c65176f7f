"""Spans of real worker processes."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from django_tenantqueue.states import State
from tests.testapp.tasks import add, async_add, fail

from .tasks import hold
from .workers import Gate, Workers, wait_for_end, wait_for_state

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanContext

from django_tenantqueue.contrib.otel import instrument, uninstrument


@pytest.fixture
def sent() -> Any:
    provider = TracerProvider()
    instrument(provider)
    yield provider
    uninstrument()
    provider.shutdown()


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_spans_of_a_worker_are_sent_when_it_ends(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: TracerProvider
):
    path = tmp_path / "spans"
    monkeypatch.setenv("TEST_SPANS", str(path))
    contexts: list[SpanContext] = []
    jobs = []
    for called in (add.delay, async_add.delay, fail.using(max_attempts=1).delay):
        with sent.get_tracer("test").start_as_current_span("request") as request:
            contexts.append(request.get_span_context())
            jobs.append(called(1))

    runner = workers.run("--until-empty", "--processes=1", module="tests.process.traced")

    assert runner.process.returncode == 0
    spans = {span["attributes"]["messaging.message.id"]: span for span in written(path)}
    assert len(spans) == len(jobs)
    for job, request in zip(jobs, contexts, strict=True):
        span = spans[str(job.pk)]
        assert span["name"] == "process default"
        assert span["context"]["trace_id"] == f"0x{request.trace_id:032x}"
        assert span["parent_id"] == span["links"][0]["context"]["span_id"]
        assert span["attributes"]["messaging.client.id"] == "runner0.0"
    assert spans[str(jobs[2].pk)]["status"]["status_code"] == "ERROR"


def test_spans_are_sent_when_a_worker_ends_under_a_job(
    workers: Workers, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "spans"
    monkeypatch.setenv("TEST_SPANS", str(path))
    runner = workers.start("--shutdown-timeout=0", module="tests.process.traced")
    done = add.delay(1)
    wait_for_end([done.pk])
    wait_for_state(hold.delay(str(gate)), State.RUNNING)

    runner.send(signal.SIGTERM)

    assert runner.end() == 0
    assert [s["attributes"]["messaging.message.id"] for s in written(path)] == [str(done.pk)]
