"""What the pages of monitors call their states, and the bar of a monitor's progress."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..status.monitor_progress import Progress

LABELS = {
    "waiting": _("waits for its session"),
    "running": _("running"),
    "paused": _("paused"),
    "stopped": _("stopped"),
    "open": _("open"),
    "ending": _("ending"),
    "ended": _("ended"),
    "cancelling": _("is being cancelled"),
    "cancelled": _("cancelled"),
}
COLOURS = {
    "running": "running",
    "paused": "error",
    "stopped": "error",
    "ending": "running",
    "ended": "success",
}
"""Statuses that look like a state of a job."""
PARTS = {
    "running": _("running"),
    "ready": _("ready"),
    "retrying": _("waiting for another attempt"),
    "in_line": _("held by the monitor"),
    "aside": _("held by their tasks"),
    "failed": _("failed"),
    "cancelled": _("cancelled"),
    "done": _("done"),
}
"""What a detail can be, as counted by Progress."""


def status_badge(now: Progress) -> SafeString:
    """Return what a monitor does as a coloured label, with the reason as its tooltip."""
    return format_html(
        '<span class="tq-state tq-state-{}" title="{}">{}</span>',
        COLOURS.get(now.status, "held"),
        now.reason,
        LABELS[now.status],
    )


def share_bar(now: Progress) -> SafeString:
    """Return a bar of what has succeeded, failed, was cancelled, and runs, and the share ended."""
    if not now.total:
        return format_html('<span class="tq-quiet">{}</span>', gettext("no details"))
    ended = (("success", now.done), ("error", now.failed), ("held", now.cancelled))
    parts = (*ended, ("running", now.running))
    return format_html(
        '<span class="tq-share" role="img" aria-label="{}">{}</span> '
        '<span class="tq-number tq-share-text">{} %</span>',
        counts_text(now),
        format_html_join(
            "",
            '<svg class="tq-share-{}" width="{}%"></svg>',
            ((name, f"{100 * count / now.total:.2f}") for name, count in parts if count),
        ),
        int(now.percent or 0),  # 99.9 % is not the end
    )


def counts_text(now: Progress) -> str:
    """Return how many details are in each state, in words."""
    counts = ((label, getattr(now, name)) for name, label in PARTS.items())
    return ", ".join(f"{count:,} {label}" for label, count in counts if count)
