"""The details of a monitor in one state, with links to the other states."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from ..models import ConcurrentJobMonitor, Job
from ..operations.monitor_control import DETAILS_SHOWN, list_details
from ..status.monitor_progress import Progress
from .base import jobs_hidden
from .formats import NOTHING, breakable, duration_text, moment, state_badge
from .links import job_link
from .monitor_export import download_links
from .monitor_words import PARTS


def chosen_part(asked: str, now: Progress) -> str:
    """Return the state to show: the one asked for, else what failed, what runs, or the most."""
    if asked in PARTS:
        return asked
    for name in ("failed", "running", "ready", "in_line", "aside"):
        if getattr(now, name):
            return name
    return "done"


def details_of(
    using: str, monitor: ConcurrentJobMonitor, now: Progress, part: str, *, sees_jobs: bool
) -> SafeString:
    """Return the details in the state `part` as HTML."""
    tabs = format_html_join(
        " ",
        '<a href="?details={}" aria-current="{}">{} <span class="tq-number">{}</span></a>',
        (
            (name, "true" if name == part else "false", label, f"{getattr(now, name):,}")
            for name, label in PARTS.items()
        ),
    )
    jobs = jobs_hidden()
    if sees_jobs:
        shown = list_details(using, monitor, part)
        jobs = _table(shown, getattr(now, part)) + download_links(monitor, part, PARTS[part])
    return format_html('<div class="tq-tabs">{}</div>{}', tabs, jobs)


def _table(jobs: Sequence[Job], count: int) -> SafeString:
    if not jobs:
        return format_html('<p class="tq-quiet">{}</p>', gettext("none"))
    rows = format_html_join(
        "",
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        (
            (
                job_link(job.pk),
                breakable(job.name),
                state_badge(job.state),
                f"{job.attempt} / {job.max_attempts}",
                duration_text(job.run_duration) if job.run_duration else NOTHING,
                (job.last_error or {}).get("message", "")[:120] or moment(job.finished_at),
            )
            for job in jobs
        ),
    )
    more = ""
    if count > len(jobs):
        more = gettext("%(shown)d of %(count)s are shown") % {
            "shown": min(len(jobs), DETAILS_SHOWN),
            "count": f"{count:,}",
        }
    return format_html(
        '<div class="tq-scroll"><table class="tq-line"><thead><tr><th>{}</th><th>{}</th><th>{}</th>'
        "<th>{}</th><th>{}</th><th>{}</th></tr></thead><tbody>{}</tbody></table></div>{}",
        gettext("job"),
        gettext("name"),
        gettext("state"),
        gettext("attempt"),
        gettext("took"),
        gettext("error, or when it ended"),
        rows,
        more,
    )
