"""What happened to a job and when, in order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from ..models import Job
from ..states import State
from .formats import duration_text, moment, parse_moment

DUE_LATER = timedelta(milliseconds=500)
"""A job that was due this soon after it was created was due at once."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a job. `kind` says what the job did from then on."""

    at: datetime
    label: str
    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """The time between two events; `share` is in percent of the whole."""

    event: Event
    until: datetime
    label: str
    share: float

    @property
    def text(self) -> str:
        """How long it took."""
        return duration_text(self.until - self.event.at)


@dataclass(frozen=True, slots=True)
class Row:
    """An event and what followed it; nothing follows the last."""

    event: Event
    span: Span | None

    @property
    def at(self) -> SafeString | str:
        """When it was, as HTML."""
        return moment(self.event.at)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A job's events and the spans between them, the last one open until now when unfinished."""

    rows: tuple[Row, ...]
    spans: tuple[Span, ...]


def _events(job: Job) -> list[Event]:
    found = [Event(job.created_at, gettext("created"), "waiting")]
    for error in job.kept_errors:
        at = parse_moment(error.get("at"))
        if at is not None and at != job.finished_at:
            text = gettext("attempt %s failed") % error.get("attempt", "?")
            found.append(Event(at, text, "backoff", str(error.get("class", ""))))
    if job.run_at - job.created_at > DUE_LATER:
        found.append(Event(job.run_at, gettext("due"), "waiting"))
    if job.queued_at is not None:
        found.append(Event(job.queued_at, gettext("queued"), "handed"))
    if job.started_at is not None:
        text = gettext("started, attempt %(attempt)s of %(most)s") % {
            "attempt": job.attempt,
            "most": job.max_attempts,
        }
        found.append(Event(job.started_at, text, "running"))
    if job.cancel_requested_at is not None and job.state != State.CANCELLED:
        found.append(Event(job.cancel_requested_at, gettext("asked to stop"), "stopping"))
    return found


def _label(kind: str) -> str:
    return {
        "waiting": gettext("waited"),
        "backoff": gettext("waited for the next attempt"),
        "handed": gettext("handed to a thread"),
        "running": gettext("ran"),
        "stopping": gettext("ran on"),
        "future": gettext("not due yet"),
    }[kind]


def make_timeline(job: Job, now: datetime | None = None) -> Timeline:
    """Return what happened to a job, in order of time."""
    events = sorted(_events(job), key=lambda event: event.at)
    if job.finished_at is not None:
        events = [event for event in events if event.at <= job.finished_at]
        events.append(Event(job.finished_at, str(State(job.state).label), job.state))
    else:
        events = _with_now(events, now or timezone.now())
    whole = max((events[-1].at - events[0].at).total_seconds(), 1e-6)
    spans = []
    for event, after in pairwise(events):
        share = 100.0 * (after.at - event.at).total_seconds() / whole
        label = _label(event.kind)
        if after.kind == "backoff" and event.kind != "running":
            label = gettext("waited and ran")  # starts of earlier attempts are not kept
        spans.append(Span(event, after.at, label, share))
    rows = [Row(event, span) for event, span in zip(events, [*spans, None], strict=True)]
    return Timeline(tuple(rows), tuple(spans))


def _with_now(events: list[Event], now: datetime) -> list[Event]:
    """Put the present among the events: after it comes only what is still to be."""
    past = [event for event in events if event.at <= now] or events[:1]
    ahead = [event for event in events if event not in past]
    kind = "future" if ahead else "now"
    return [*past, Event(max(now, past[-1].at), gettext("now"), kind), *ahead]
