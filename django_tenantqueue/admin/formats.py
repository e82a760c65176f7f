"""Times, durations, states and JSON as operators read them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.utils import formats, timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from ..states import EARLIEST, LATEST, State
from ..status.display_limits import TEXT
from ..status.figures import NOTHING as NOTHING
from ..status.figures import duration_text as duration_text
from ..status.figures import rough_text
from ..text import read_number as read_number


def moment_text(value: datetime, now: datetime | None = None) -> str:
    """Return how long ago a moment was, or how far ahead it is."""
    seconds = ((now or timezone.now()) - value).total_seconds()
    if abs(seconds) < 1:
        return gettext("now")
    if seconds < 0:
        return gettext("in %s") % duration_text(float(int(-seconds)))
    return gettext("%s ago") % rough_text(seconds)


def ongoing(value: timedelta, title: str) -> SafeString:
    """Return how long something has taken that is not over yet, as HTML."""
    seconds = max(value.total_seconds(), 0.0)
    return format_html(
        '<span class="tq-ongoing" title="{}: {}">{}…</span>',
        title,
        duration_text(seconds),
        rough_text(seconds),
    )


def breakable(name: str) -> SafeString:
    """Return a dotted name as HTML that may be broken after its dots and underscores."""
    parts = re.split(r"(?<=[._])", name)
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in parts))


def parse_moment(text: object) -> datetime | None:
    """Return the moment that stored text names; None when it names none that can be shown."""
    try:
        moment = parse_datetime(str(text or ""))
    except ValueError:
        return None
    if moment is None or timezone.is_naive(moment) or EARLIEST <= moment < LATEST:
        return moment
    return None


def exact_text(value: datetime) -> str:
    """Return a moment to the millisecond, in the current time zone."""
    local = timezone.localtime(value)
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03d} {local:%Z}"


def value_text(value: Any) -> str:
    """Return a column's value for a sentence."""
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, datetime):
        return exact_text(value).replace(".000", "")
    return gettext("nothing") if value in (None, "") else str(value)


def moment(value: datetime | None, now: datetime | None = None) -> SafeString | str:
    """Return a moment as HTML: how long ago it was, with the exact time as its tooltip."""
    if value is None:
        return NOTHING
    return format_html(
        '<time class="tq-time" datetime="{}" title="{}">{}</time>',
        value.isoformat(),
        exact_text(value),
        moment_text(value, now),
    )


def badge(name: str, text: object) -> SafeString:
    """Return a label in the colours of the state `name` of a job: held is grey, error is red."""
    return format_html('<span class="tq-state tq-state-{}">{}</span>', name, text)


def number(text: object) -> SafeString:
    """Return a number as HTML whose digits stand below each other in a list."""
    return format_html('<span class="tq-number">{}</span>', text)


def unbroken(text: object) -> SafeString:
    """Return a duration as HTML that stays on one line."""
    return format_html('<span class="tq-time">{}</span>', text)


def badges(labels: Iterable[SafeString]) -> SafeString:
    """Return labels beside each other."""
    shown = format_html_join(" ", "{}", ((label,) for label in labels))
    return format_html('<span class="tq-badges">{}</span>', shown) if shown else shown


def table(titles: Iterable[object], rows: Iterable[Iterable[object]]) -> SafeString:
    """Return a table as HTML; one that is too wide scrolls."""
    head = format_html_join("", '<th scope="col">{}</th>', ((title,) for title in titles))
    body = format_html_join(
        "",
        "<tr>{}</tr>",
        ((format_html_join("", "<td>{}</td>", ((cell,) for cell in row)),) for row in rows),
    )
    return format_html(
        '<div class="tq-scroll"><table class="tq-line"><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>",
        head,
        body,
    )


def state_badge(state: str) -> SafeString:
    """Return a job's state as a coloured label."""
    label = State(state).label if state in State.values else state
    return badge(state, label)


def failure_text(text: str, at: datetime | None) -> SafeString | str:
    """Return the beginning of an error as HTML, all of it as its tooltip, and when it happened."""
    if not text:
        return NOTHING
    short = " ".join(text.split())
    if len(short) > 80:
        short = f"{short[:79]}…"
    return format_html(
        '<span class="tq-error" title="{}">{}</span> <small>{}</small>',
        text[:TEXT],
        short,
        moment(at),
    )


def progress_bar(percent: float | None, label: str = "") -> SafeString | str:
    """Return a bar for a share of 100, its number in writing beside it: 100 % is the end alone."""
    if percent is None:
        return label or NOTHING
    return format_html(
        '<span class="tq-progress"><progress max="100" value="{}"></progress> {}</span>',
        f"{percent:.1f}",
        label or f"{int(percent)} %",
    )


def counted(number: int, most: int) -> str:
    """Return a count that stopped at `most`."""
    text = str(formats.localize(min(number, most), use_l10n=True))
    return f"{text}+" if number >= most else text


def json_text(value: Any) -> str:
    """Return a value as indented JSON."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=str)
    except RecursionError:
        return gettext("It is nested too deeply to be shown.")
