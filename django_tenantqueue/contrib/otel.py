"""Spans for OpenTelemetry: one for each enqueue, one for each run. Needs the extra `otel`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import propagate, trace
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

from .. import __version__
from ..calls import tracing
from ..execution.job_log import RETRIED, worker_name
from ..execution.outcome import Outcome
from ..states import State
from ..stored_error import class_name
from ..worker.config import KILL_SECONDS

SYSTEM = "tenantqueue"
BATCH = "batch"
"""Mark in a job's context: its send span has also sent other jobs."""

_NOTED = {
    "job": "messaging.message.id",
    "count": "messaging.batch.message_count",
    "duplicate": "tenantqueue.duplicate",
    "monitor": "tenantqueue.monitor",
}
_sends_batch = otel_context.create_key("tenantqueue-batch")


def instrument(tracer_provider: TracerProvider | None = None) -> None:
    """Create a span for every enqueue and every run, in this process and workers forked from it.

    Call it in `AppConfig.ready()`. `tracer_provider`: the global one if None. A second call
    replaces the provider.
    """
    tracing.active = _Tracer(tracer_provider)


def uninstrument() -> None:
    """Stop creating spans."""
    tracing.active = None


class _Tracer:
    """See `tracing.Tracer`."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._provider = provider
        self._tracer = trace.get_tracer("django_tenantqueue", __version__, provider)

    @contextmanager
    def send(
        self, tenant: str, queue: str | None, task: str | None = None, *, is_batch: bool = False
    ) -> Iterator[Callable[..., None]]:
        """See `tracing.Tracer`."""
        attributes = _attributes("send", tenant, queue, task)
        token = otel_context.attach(otel_context.set_value(_sends_batch, is_batch))
        try:
            with self._span("send", queue, SpanKind.PRODUCER, attributes) as span:

                def note(**values: Any) -> None:
                    if "job" in values:  # the conventions ask for a text
                        values["job"] = str(values["job"])
                    span.set_attributes({_NOTED[name]: value for name, value in values.items()})

                yield note
        finally:
            otel_context.detach(token)

    @contextmanager
    def process(self, running: Any) -> Iterator[Callable[[Outcome], None]]:
        """See `tracing.Tracer`."""
        parent, links = _origin(running._claimed.context)
        attributes = _attributes("process", running.tenant, running.queue, running.task)
        attributes |= {
            "messaging.message.id": str(running.id),
            "tenantqueue.attempt": running.attempt,
            "tenantqueue.max_attempts": running.max_attempts,
        }
        if worker_name():
            attributes["messaging.client.id"] = worker_name()
        token = otel_context.attach(parent)  # with baggage
        try:
            with self._span("process", running.queue, SpanKind.CONSUMER, attributes, links) as span:
                try:
                    yield lambda outcome: _note_outcome(span, outcome)
                except Exception:
                    span.set_attribute("tenantqueue.outcome", State.ERROR.value)
                    raise
        finally:
            otel_context.detach(token)

    def capture(self) -> dict[str, str] | None:
        """See `tracing.Tracer`."""
        carried: dict[str, str] = {}
        propagate.inject(carried)
        if carried and otel_context.get_value(_sends_batch):
            carried[BATCH] = "1"
        return carried or None

    def flush(self) -> None:
        """See `tracing.Tracer`."""
        provider = self._provider or trace.get_tracer_provider()
        flush = getattr(provider, "force_flush", None)  # the API alone has none
        if flush is not None:
            flush(int(1000 * KILL_SECONDS))  # milliseconds

    @contextmanager
    def _span(
        self,
        operation: str,
        queue: str | None,
        kind: SpanKind,
        attributes: dict[str, Any],
        links: Sequence[Link] = (),
    ) -> Iterator[Span]:
        """Make a span current, and record an error."""
        name = f"{operation} {queue}" if queue else operation
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, links=links
        ) as span:
            try:
                yield span
            except Exception as error:
                span.set_attribute("error.type", class_name(type(error)))
                raise


def _attributes(operation: str, tenant: str, queue: str | None, task: str | None) -> dict[str, Any]:
    found = {
        "messaging.system": SYSTEM,
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
        "messaging.destination.name": queue,
        "tenantqueue.tenant": tenant,
        "tenantqueue.task": task,
    }
    return {name: value for name, value in found.items() if value}


def _origin(text: str | None) -> tuple[otel_context.Context, list[Link]]:
    """Return the context of a run, and the link to the span that has sent the job.

    That span is also the parent, unless it has sent other jobs: one trace would have all of them.
    """
    carried = None if text is None else json.loads(text).get(tracing.TRACE)
    if not isinstance(carried, dict):
        return otel_context.get_current(), []
    found = propagate.extract(carried, otel_context.Context())
    sender = trace.get_current_span(found).get_span_context()
    links = [Link(sender)] if sender.is_valid else []
    if BATCH in carried:
        found = trace.set_span_in_context(trace.INVALID_SPAN, found)
    return found, links


def _note_outcome(span: Span, outcome: Outcome) -> None:
    finished, failed = outcome.finished, outcome.failed
    said: str | None = None
    extra = outcome.reason
    if outcome.stored:
        said = State.SUCCESS.value
    elif finished is not None:
        said, extra = finished.state, finished.extra
    elif failed is not None:
        said, extra = RETRIED, failed.extra
    elif outcome.lost:
        said = "lost"
    else:
        said = "returned"
    span.set_attribute("tenantqueue.outcome", said)
    if said not in (State.ERROR, RETRIED) or extra is None:
        return
    error = json.loads(extra)["error"]
    span.set_attribute("error.type", error["class"])
    described = {
        "exception.type": error["class"],
        "exception.message": error["message"],
        "exception.stacktrace": error["traceback"],
    }
    span.add_event("exception", described)
    span.set_status(Status(StatusCode.ERROR, f"{error['class']}: {error['message']}"))
