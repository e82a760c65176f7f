"""Spans of enqueues and runs, as an exporter in memory gets them."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from django.urls import reverse

from django_tenantqueue import Unique, current_job, task
from django_tenantqueue.calls import tracing
from django_tenantqueue.exceptions import QueueFull
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.run import run_async, run_sync
from django_tenantqueue.models import ConcurrentJobMonitor, Job, TenantQueue
from django_tenantqueue.operations import again, control
from django_tenantqueue.queries.claim import ClaimedJob
from django_tenantqueue.testing import run_pending
from tests.testapp.tasks import add, async_add, fail, noop

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from django_tenantqueue.contrib.otel import instrument, uninstrument

Spans = Callable[..., list[ReadableSpan]]
TRACEPARENT = "00-{:032x}-{:016x}-01"


def carried(trace_id: int) -> str:
    return json.dumps({tracing.TRACE: {"traceparent": TRACEPARENT.format(trace_id, 8)}})


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> Iterator[TracerProvider]:
    """Instrument, with spans kept in memory."""
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    instrument(made)
    yield made
    uninstrument()
    made.shutdown()


@pytest.fixture
def spans(provider: TracerProvider, exporter: InMemorySpanExporter) -> Spans:
    """Return a function that returns the spans of an operation, or all, as they ended."""

    def find(operation: str | None = None) -> list[ReadableSpan]:
        return [
            span
            for span in exporter.get_finished_spans()
            if operation in (None, span.attributes["messaging.operation.type"])
        ]

    return find


@task
def say_span() -> str:
    """Return the id of the current span."""
    return f"{trace.get_current_span().get_span_context().span_id:016x}"


@task
async def say_span_later() -> str:
    """Return the id of the current span."""
    await asyncio.sleep(0)
    return f"{trace.get_current_span().get_span_context().span_id:016x}"


@task
def say_baggage() -> object:
    """Return a value that came along."""
    return baggage.get_baggage("request")


@task
def enqueue_another() -> None:
    """Enqueue a job."""
    noop.delay()


@task(atomic=True)
def add_atomically() -> int:
    """Return a number."""
    return 3


@task
def cancel_myself() -> None:
    """Be cancelled."""
    control.cancel([current_job().id])
    current_job().cancel_requested = True
    current_job().check()


@task(unique=Unique("until_executed"))
def add_once() -> None:
    """Do nothing."""


def ids(span: ReadableSpan) -> tuple[int, int]:
    return span.context.trace_id, span.context.span_id


def parent(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def links(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def outcomes(found: list[ReadableSpan]) -> list[Any]:
    return [span.attributes["tenantqueue.outcome"] for span in found]


@pytest.mark.django_db
@pytest.mark.parametrize("called", [add, async_add])
def test_run_is_child_of_its_enqueue_and_linked_to_it(spans: Spans, called):
    job = called.using(tenant="acme", queue="reports").delay(1)

    run_pending()

    sent, processed = spans()
    assert (sent.name, sent.kind) == ("send reports", SpanKind.PRODUCER)
    assert dict(sent.attributes) == {
        "messaging.system": "tenantqueue",
        "messaging.operation.type": "send",
        "messaging.operation.name": "send",
        "messaging.destination.name": "reports",
        "messaging.message.id": str(job.pk),
        "tenantqueue.tenant": "acme",
        "tenantqueue.task": called.name,
    }
    assert (processed.name, processed.kind) == ("process reports", SpanKind.CONSUMER)
    assert dict(processed.attributes) == {
        "messaging.system": "tenantqueue",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.destination.name": "reports",
        "messaging.message.id": str(job.pk),
        "tenantqueue.tenant": "acme",
        "tenantqueue.task": called.name,
        "tenantqueue.attempt": 1,
        "tenantqueue.max_attempts": 5,
        "tenantqueue.outcome": "success",
    }
    assert processed.context.trace_id == sent.context.trace_id
    assert parent(processed) == sent.context.span_id
    assert links(processed) == [ids(sent)]
    assert processed.status.status_code is StatusCode.UNSET


@pytest.mark.django_db
def test_enqueue_is_child_of_the_current_span(spans: Spans, provider):
    with provider.get_tracer("shop").start_as_current_span(
        "GET /", attributes={"messaging.operation.type": "none"}
    ) as request:
        noop.delay()

    assert parent(spans("send")[0]) == request.get_span_context().span_id


@pytest.mark.django_db
@pytest.mark.parametrize("called", [say_span, say_span_later])
def test_span_is_current_in_the_body_of_the_job(spans: Spans, called):
    called.delay()

    (job,) = run_pending()

    assert job.result == f"{spans('process')[0].context.span_id:016x}"
    assert not trace.get_current_span().get_span_context().is_valid


def test_nothing_is_left_for_the_next_job_of_a_thread(spans: Spans, claimed_job):
    found: list[bool] = []

    def work() -> None:
        run_sync(RunningJob(claimed_job(context=carried(7))), 0)
        found.append(trace.get_current_span().get_span_context().is_valid)
        run_sync(RunningJob(claimed_job()), 0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    first, second = spans("process")
    assert first.context.trace_id == 7
    assert second.context.trace_id != 7
    assert (second.parent, links(second), found) == (None, [], [False])


def test_coroutines_side_by_side_have_spans_of_their_own(spans: Spans, claimed_job):
    name = say_span_later.name
    jobs = [
        RunningJob(
            claimed_job(
                id=number, is_async=True, task=name, source_method=name, context=carried(number)
            )
        )
        for number in (1, 2, 3)
    ]

    async def run() -> list[Any]:
        return await asyncio.gather(*(run_async(job) for job in jobs))

    ended = asyncio.run(run())

    own = {span.context.trace_id: f'"{span.context.span_id:016x}"' for span in spans("process")}
    assert [outcome.finished.result for outcome in ended] == [own[1], own[2], own[3]]


@pytest.mark.django_db
def test_each_attempt_is_linked_to_the_same_enqueue(spans: Spans):
    fail.using(max_attempts=2).delay("no such file")

    run_pending(scheduled=True)

    (sent,) = spans("send")
    first, second = spans("process")
    assert [span.attributes["tenantqueue.attempt"] for span in (first, second)] == [1, 2]
    assert outcomes([first, second]) == ["retried", "error"]
    for span in (first, second):
        assert links(span) == [ids(sent)]
        assert parent(span) == sent.context.span_id
        assert span.attributes["error.type"] == "ValueError"
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description == "ValueError: no such file"
        (event,) = span.events
        assert event.name == "exception"
        assert event.attributes["exception.type"] == "ValueError"
        assert event.attributes["exception.message"] == "no such file"
        assert "in fail" in event.attributes["exception.stacktrace"]


@pytest.mark.django_db
def test_retry_by_an_operator_is_linked_to_the_first_enqueue(spans: Spans):
    job = fail.using(max_attempts=1).delay()
    run_pending()
    control.retry([job.pk])

    run_pending()

    (sent,) = spans("send")
    assert [links(span) for span in spans("process")] == [[ids(sent)]] * 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("called", "outcome"), [(add_atomically, "success"), (cancel_myself, "cancelled")]
)
def test_outcome_is_that_of_the_job(spans: Spans, called, outcome):
    called.delay()

    run_pending()

    (span,) = spans("process")
    assert outcomes([span]) == [outcome]
    assert span.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("changes", "outcome"), [({"source_method": "tests.gone"}, "returned"), ({}, "lost")]
)
def test_run_that_ends_nothing_says_so(spans: Spans, claimed_job, changes, outcome):
    name = fail.name
    running = RunningJob(claimed_job(**{"task": name, "source_method": name, **changes}))
    running.lost = outcome == "lost"

    run_sync(running, 0)

    assert outcomes(spans()) == [outcome]


@pytest.mark.django_db
def test_batch_has_one_span_and_its_runs_have_traces_of_their_own(spans: Spans):
    add.using(queue="reports").enqueue_many([1, 2, 3])

    run_pending()

    (sent,) = spans("send")
    assert sent.name == "send reports"
    assert sent.attributes["messaging.batch.message_count"] == 3
    assert "messaging.message.id" not in sent.attributes
    processed = spans("process")
    assert [parent(span) for span in processed] == [None] * 3
    assert [links(span) for span in processed] == [[ids(sent)]] * 3
    assert len({span.context.trace_id for span in [sent, *processed]}) == 4


@pytest.mark.django_db
def test_details_and_callback_are_linked_to_the_span_of_their_monitor(spans: Spans):
    monitor = ConcurrentJobMonitor.objects.start(
        "import",
        [add.call(1), add.call(2)],
        tenant="acme",
        parallel=2,
        keep_open=True,
        on_end=noop.call(),
    )
    monitor.add([add.call(3)])
    monitor.close()

    run_pending()

    started, added = spans("send")
    assert started.name == added.name == "send"
    assert started.attributes["messaging.batch.message_count"] == 2
    assert added.attributes["messaging.batch.message_count"] == 1
    assert started.attributes["tenantqueue.monitor"] == monitor.pk
    assert started.attributes["tenantqueue.tenant"] == "acme"
    processed = spans("process")
    assert sorted(links(span)[0] for span in processed) == sorted([ids(started)] * 3 + [ids(added)])
    assert {span.parent for span in processed} == {None}


@pytest.mark.django_db
def test_job_that_a_job_enqueues_is_in_its_trace(spans: Spans):
    enqueue_another.delay()

    run_pending()

    _, second = spans("send")
    outer, _ = spans("process")
    assert parent(second) == outer.context.span_id
    assert len({span.context.trace_id for span in spans()}) == 1


@override_settings(TENANTQUEUE={"EAGER": True})
def test_eager_run_is_child_of_its_enqueue(spans: Spans):
    job = say_span.using(tenant="acme").delay()

    processed, sent = spans()
    assert parent(processed) == sent.context.span_id
    assert job.result == f"{processed.context.span_id:016x}"
    assert outcomes([processed]) == ["success"]
    assert processed.attributes["tenantqueue.tenant"] == "acme"


@override_settings(TENANTQUEUE={"EAGER": True})
def test_eager_error_is_recorded(spans: Spans):
    with pytest.raises(ValueError, match="it failed"):
        fail.delay()

    processed, sent = spans()
    assert outcomes([processed]) == ["error"]
    for span in (processed, sent):
        assert span.attributes["error.type"] == "ValueError"
        assert span.status.status_code is StatusCode.ERROR


@pytest.mark.django_db
def test_enqueue_that_is_refused_is_an_error(spans: Spans):
    TenantQueue.objects.create(tenant="", name="small", max_waiting=0)

    with pytest.raises(QueueFull):
        noop.using(queue="small").delay()

    (sent,) = spans()
    assert sent.attributes["error.type"] == "django_tenantqueue.exceptions.QueueFull"
    assert sent.status.status_code is StatusCode.ERROR


@pytest.mark.django_db
def test_duplicate_names_the_existing_job(spans: Spans):
    job = add_once.delay()

    add_once.delay()

    first, second = spans("send")
    assert "tenantqueue.duplicate" not in first.attributes
    assert second.attributes["tenantqueue.duplicate"] is True
    assert second.attributes["messaging.message.id"] == str(job.pk)


@pytest.mark.django_db
def test_baggage_and_trace_state_travel_with_a_job(spans: Spans):
    remote = trace.SpanContext(5, 6, True, trace.TraceFlags(1), trace.TraceState([("shop", "a1")]))
    outer = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    token = context.attach(baggage.set_baggage("request", "r-17", outer))
    try:
        for_one = say_baggage.delay()
        say_baggage.enqueue_many([()])
    finally:
        context.detach(token)

    assert [job.result for job in run_pending()] == ["r-17", "r-17"]
    stored = Job.objects.get(pk=for_one.pk).context[tracing.TRACE]
    assert stored["tracestate"] == "shop=a1"
    assert stored["traceparent"] == TRACEPARENT.format(5, spans("send")[0].context.span_id)
    assert spans("process")[0].context.trace_state.get("shop") == "a1"


@pytest.mark.django_db
def test_page_of_a_job_shows_its_trace(spans: Spans, admin_client):
    job = noop.delay()

    page = admin_client.get(reverse("admin:tenantqueue_job_change", args=[job.pk]))

    assert f"{spans('send')[0].context.trace_id:032x}" in page.content.decode()


@pytest.mark.django_db
def test_job_that_is_enqueued_again_belongs_to_the_new_enqueue(spans: Spans):
    job = noop.delay()
    run_pending()

    again.enqueue_again(job.refresh(), (), {})
    run_pending()

    _, second = spans("send")
    assert links(spans("process")[1]) == [ids(second)]


@pytest.mark.django_db
def test_nothing_is_carried_without_instrument():
    assert tracing.active is None
    job = noop.delay()

    assert Job.objects.get(pk=job.pk).context is None


@pytest.mark.django_db
def test_job_without_a_trace_runs_in_one_of_its_own(spans: Spans, provider):
    uninstrument()
    noop.delay()
    instrument(provider)

    run_pending()

    (processed,) = spans()
    assert processed.parent is None
    assert links(processed) == []


@pytest.mark.parametrize("found", [7, "text", [], {}, {"traceparent": "no", "batch": "1"}])
def test_trace_that_cannot_be_read_harms_no_job(spans: Spans, claimed_job, found):
    text = json.dumps({tracing.TRACE: found})

    outcome = run_sync(RunningJob(claimed_job(context=text)), 0)

    assert outcome.finished is not None
    assert outcomes(spans()) == ["success"]
    assert links(spans()[0]) == []


def test_flush_asks_the_provider(provider, monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr(provider, "force_flush", asked.append)

    tracing.active.flush()

    assert asked == [5000]


def test_api_without_an_sdk_does_no_harm(claimed_job: Callable[..., ClaimedJob]):
    instrument()
    try:
        outcome = run_sync(RunningJob(claimed_job()), 0)
        tracing.active.flush()
        assert tracing.active.capture() is None
    finally:
        uninstrument()

    assert outcome.finished is not None


@pytest.mark.django_db
def test_every_attribute_is_documented(spans: Spans):
    add_once.delay()
    add_once.delay()
    fail.using(max_attempts=1, tenant="acme").delay()
    ConcurrentJobMonitor.objects.start("import", [add.call(1)], parallel=1)
    run_pending()

    found = {name for span in spans() for name in span.attributes}
    text = (Path(__file__).parents[2] / "docs/reference/tracing.md").read_text()
    cells = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    documented = set(re.findall(r"`([a-z_]+\.[a-z_.]+)`", "".join(cells)))
    assert documented == found | {"messaging.client.id"}  # that of a worker process


def test_attributes_are_those_of_the_conventions():
    conventions = pytest.importorskip(
        "opentelemetry.semconv._incubating.attributes.messaging_attributes"
    )
    known = {value for name, value in vars(conventions).items() if name.isupper()}
    text = (Path(__file__).parents[2] / "docs/reference/tracing.md").read_text()

    assert set(re.findall(r"`(messaging\.[a-z_.]+)` \|", text)) <= known
