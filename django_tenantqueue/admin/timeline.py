"""What happened to a job and when, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from ..models import Change, Job
from ..states import EARLIEST, State
from ..stored_error import entries_of
from .formats import duration_text, moment, parse_moment


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a job. `kind` says what the job did from then on; "": the same."""

    at: datetime
    label: str
    kind: str
    detail: str = ""
    is_retry: bool = False
    """An operator or code has run the job again after its end."""
    other_job: int | None = None
    """The job that was made from this one, or from which this one was made."""


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


def _events(job: Job, changes: Sequence[Change]) -> list[Event]:
    found = [_created(job, changes)]
    found += _failed_attempts(job)
    found += [_changed(change) for change in changes if _made_from(change) is None]
    if job.run_at - job.created_at > timedelta(seconds=0.5):  # else it was due at once
        found.append(Event(job.run_at, gettext("due"), "waiting"))
    if job.queued_at is not None:
        found.append(Event(job.queued_at, gettext("queued"), "handed"))
    if job.started_at is not None and not any(e.kind == "running" for e in _last_attempt(job)):
        found.append(_started(job, job.started_at, job.attempt))
    is_asked = any(change.action == Change.Action.CANCEL for change in changes)
    if job.cancel_requested_at is not None and job.state != State.CANCELLED and not is_asked:
        found.append(Event(job.cancel_requested_at, gettext("asked to stop"), "stopping"))
    return found


def _failed_attempts(job: Job) -> Iterator[Event]:
    """Yield the start and the end of each attempt that failed, but not the end of the last run."""
    for error in entries_of(job.errors):
        yield from _attempt(job, error, is_end=error is job.last_error and _ended_by_error(job))


def _last_attempt(job: Job) -> Iterator[Event]:
    error = job.last_error
    if error is not None and _ended_by_error(job):
        yield from _attempt(job, error, is_end=True)


def _ended_by_error(job: Job) -> bool:
    return (
        job.state in (State.ERROR, State.CANCELLED)
        and job.last_error is not None
        and job.last_error.get("attempt") == job.attempt
    )


def _attempt(job: Job, error: Mapping[str, Any], *, is_end: bool) -> Iterator[Event]:
    at, seconds, attempt = parse_moment(error.get("at")), error.get("seconds"), error.get("attempt")
    if at is None:
        return
    if isinstance(seconds, int | float) and 0 <= seconds < (at - EARLIEST).total_seconds():
        yield _started(job, at - timedelta(seconds=seconds), attempt)
    if not is_end:
        text = gettext("attempt %s failed") % ("?" if attempt is None else attempt)
        yield Event(at, text, "backoff", str(error.get("class", "")))


def _started(job: Job, at: datetime, attempt: object) -> Event:
    text = gettext("started, attempt %(attempt)s of %(most)s") % {
        "attempt": attempt,
        "most": job.max_attempts,
    }
    return Event(at, text, "running")


def _created(job: Job, changes: Sequence[Change]) -> Event:
    for change in changes:
        old = _made_from(change)
        if old is not None and old != job.pk:
            text = gettext("enqueued again by %s from") % _who(change)
            return Event(job.created_at, gettext("created"), "waiting", text, other_job=old)
    return Event(job.created_at, gettext("created"), "waiting")


def _enqueued_again(job: Job, changes: Sequence[Change]) -> Iterator[Event]:
    for change in changes:
        new = change.after.get("job") if _made_from(change) == job.pk else None
        if isinstance(new, int):
            text = gettext("enqueued again by %s as") % _who(change)
            yield Event(change.made_at, text, "", other_job=new)


def _made_from(change: Change) -> int | None:
    """Return the job that was enqueued again; None: the change is another one."""
    if change.action != Change.Action.ENQUEUE_AGAIN or not isinstance(change.before, dict):
        return None
    old = change.before.get("job")
    return old if isinstance(old, int) and isinstance(change.after, dict) else None


def _who(change: Change) -> str:
    source = change.get_source_display()
    return f"{change.actor} ({source})" if change.actor else source


def _changed(change: Change) -> Event:
    text = gettext("%(action)s by %(who)s") % {
        "action": change.get_action_display(),
        "who": _who(change),
    }
    if change.action == Change.Action.RETRY:
        return Event(change.made_at, text, "waiting", is_retry=True)
    return Event(change.made_at, text, "")


def _label(kind: str) -> str:
    return {
        "waiting": gettext("waited"),
        "backoff": gettext("waited for the next attempt"),
        "handed": gettext("handed to a thread"),
        "running": gettext("ran"),
        "stopping": gettext("ran on"),
        "future": gettext("not due yet"),
    }[kind]


def make_timeline(
    job: Job, now: datetime | None = None, changes: Sequence[Change] = ()
) -> Timeline:
    """Return what happened to a job, in order of time; `changes` are those of its audit trail."""
    events = sorted(_events(job, changes), key=lambda event: event.at)
    if job.finished_at is not None:
        events = [event for event in events if event.at <= job.finished_at]
        detail = str(job.last_error.get("class", "")) if _ended_by_error(job) else ""  # type: ignore[union-attr]
        events.append(Event(job.finished_at, str(State(job.state).label), job.state, detail))
    else:
        events = _with_now(events, now or timezone.now())
    events = _with_kinds(events)
    whole = max((events[-1].at - events[0].at).total_seconds(), 1e-6)
    spans = []
    for event, after in pairwise(events):
        share = 100.0 * (after.at - event.at).total_seconds() / whole
        label = _label(event.kind)
        if after.is_retry and event.kind == "backoff":
            label = gettext("had ended")
        elif after.kind == "backoff" and event.kind != "running":
            label = gettext("waited and ran")  # the start of that attempt is not known
        spans.append(Span(event, after.at, label, share))
    rows = [Row(event, span) for event, span in zip(events, [*spans, None], strict=True)]
    rows += [Row(event, None) for event in _enqueued_again(job, changes)]
    return Timeline(tuple(sorted(rows, key=lambda row: row.event.at)), tuple(spans))


def _with_kinds(events: list[Event]) -> list[Event]:
    """Return the events, each with what the job did after it."""
    found = events[:1]
    for event in events[1:]:
        found.append(event if event.kind else replace(event, kind=found[-1].kind))
    return found


def _with_now(events: list[Event], now: datetime) -> list[Event]:
    """Put the present among the events: after it comes only what is still to be."""
    past = [event for event in events if event.at <= now] or events[:1]
    ahead = [event for event in events if event not in past]
    kind = "future" if ahead else "now"
    return [*past, Event(max(now, past[-1].at), gettext("now"), kind), *ahead]
