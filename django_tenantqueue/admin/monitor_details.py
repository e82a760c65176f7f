"""The details of a monitor: those in one state, with links to the others, and as files."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..batch_sizes import BATCH
from ..models import ConcurrentJobMonitor, Job
from ..operations.monitor_control import DETAILS_SHOWN, list_details
from ..status.monitor_details import walk_details
from ..status.monitor_progress import Progress
from .export import Table
from .formats import NOTHING, breakable, duration_text, moment, state_badge, table
from .job_changelist import exported_columns, exported_jobs
from .links import job_link
from .monitor_words import PARTS


def chosen_part(asked: str, now: Progress) -> str:
    """Return the state to show: the one asked for, else what failed, what runs, or the most."""
    if asked in PARTS:
        return asked
    for name in ("failed", "running", "ready", "in_line", "aside"):
        if getattr(now, name):
            return name
    return "done"


def details_of(using: str, monitor: ConcurrentJobMonitor, part: str, count: int) -> SafeString:
    """Return a table of the newest of `count` details in the state `part`, as HTML."""
    jobs = list_details(using, monitor, part)
    if not jobs:
        return format_html('<p class="tq-quiet">{}</p>', gettext("none"))
    titles = (
        *(_("job"), _("task"), _("state"), _("attempt"), _("duration")),
        _("error, or when it ended"),
    )
    rows = (
        (
            job_link(job.pk),
            breakable(job.task),
            state_badge(job.state),
            f"{job.attempt} / {job.max_attempts}",
            duration_text(job.run_duration) if job.run_duration else NOTHING,
            (job.last_error or {}).get("message", "")[:120] or moment(job.finished_at),
        )
        for job in jobs
    )
    more = ""
    if count > len(jobs):
        more = gettext("%(shown)d of %(count)s are shown") % {
            "shown": min(len(jobs), DETAILS_SHOWN),
            "count": f"{count:,}",
        }
    return format_html("{}{}", table(titles, rows), more)


def details_table(using: str, monitor: ConcurrentJobMonitor, part: str | None) -> Table:
    """Return the details that `part`, a count of Progress, counts; None is all."""
    pages = walk_details(using, monitor, part, size=BATCH)
    jobs = exported_jobs(Job.objects.using(using).all(), pages)
    return Table(f"monitor-{monitor.pk}-{part or 'details'}", exported_columns(), jobs)
