"""The part of a monitor's page that refreshes itself: progress, limits, errors, details."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext

from ..models import ConcurrentJobMonitor
from ..queries.monitor_page import FailureGroup, group_failures
from ..queries.monitor_summary import sum_up_monitor
from ..status.display_limits import COUNTED_TO, LISTED
from ..status.explanation import Target, explain_monitor
from ..status.figures import rate_text
from ..status.monitor_progress import Progress
from .charts import Tile
from .formats import NOTHING, breakable, duration_text, exact_text, moment, moment_text
from .job_causes import shown_cause
from .links import job_link
from .monitor_details import chosen_part, details_of
from .monitor_words import PARTS, counts_text, share_bar, status_badge

OVER = ("ended", "cancelled")
"""States of monitors that do not change any more."""


def live_context(
    site: AdminSite,
    using: str,
    request: HttpRequest,
    monitor: ConcurrentJobMonitor,
    now: Progress,
    *,
    may_retry: bool,
    sees_jobs: bool,
) -> dict[str, Any]:
    """Return what the part of the page shows to this user."""
    at = timezone.now()
    this = Target("monitor", monitor.pk, "")
    answer = explain_monitor(using, monitor, now)
    failures: Sequence[FailureGroup] = ()
    if sees_jobs and now.failed:
        failures = group_failures(using, monitor.pk, most=COUNTED_TO, groups=LISTED)
    part = chosen_part(request.GET.get("details", ""), now)
    url = reverse("admin:tenantqueue_concurrentjobmonitor_live", args=[monitor.pk])
    if part_asked(request):
        url += f"?details={request.GET['details']}"
    return {
        "monitor": monitor,
        "now": now,
        "url": "" if now.status in OVER else url,
        "badge": status_badge(now),
        "bar": share_bar(now),
        "counts": counts_text(now),
        "ended": gettext("%(ended)s of %(total)s details have ended")
        % {"ended": f"{now.total - now.left:,}", "total": f"{now.total:,}"},
        "tiles": _tiles(using, monitor, now, at),
        "sentence": answer.sentence,
        "bounds": [
            (_details_text(bound.details), shown_cause(site, request, bound.cause, this))
            for bound in answer.bounds
        ],
        "failures": [_failure(group) for group in failures],
        "failures_left_out": _left_out(now, failures),
        "may_retry": may_retry and bool(now.failed) and monitor.cancelled_at is None,
        "sees_jobs": sees_jobs,
        "part": part,
        "part_label": PARTS[part],
        "tabs": [(name, label, f"{getattr(now, name):,}") for name, label in PARTS.items()],
        "details": details_of(using, monitor, part, getattr(now, part)) if sees_jobs else None,
    }


def part_asked(request: HttpRequest) -> bool:
    """Whether the address asks for details in one state."""
    return request.GET.get("details", "").replace("_", "").isalpha()


def per_minute(per_second: float) -> str:
    """Return how many details end in a minute."""
    return gettext("%s / min") % rate_text(60 * per_second)


def _tiles(using: str, monitor: ConcurrentJobMonitor, now: Progress, at: datetime) -> list[Tile]:
    ended = now.total - now.left
    tiles = []
    until = at
    if now.status in OVER:
        sums = sum_up_monitor(using, monitor.pk)
        until = (sums.last_at if sums else None) or monitor.created_at
        took = duration_text(until - monitor.created_at)
        tiles.append(Tile(gettext("Total time"), took, gettext("from its start to the last end")))
    else:
        tiles.append(_expected(now, at))
        rate = NOTHING if now.pace is None else per_minute(now.pace.per_second)
        note = gettext("pace of the newest 300 that ended within the last hour")
        tiles.append(Tile(gettext("Current rate"), rate, note))
    seconds = (until - monitor.created_at).total_seconds()
    rate = per_minute(ended / seconds) if ended and seconds > 0 else NOTHING
    started = gettext("started %s") % moment_text(monitor.created_at, at)
    tiles.append(Tile(gettext("Mean rate"), rate, started))
    left = now.running + now.ready + now.retrying
    flight = f"{left:,} / {monitor.parallel:,}"
    if now.status not in OVER:
        note = gettext("%(running)s running, %(line)s held by the monitor") % {
            "running": f"{now.running:,}",
            "line": f"{now.in_line:,}",
        }
        tiles.append(Tile(gettext("In flight"), flight, note))
    note = ""
    if ended:
        note = gettext("%s of the details that ended") % f"{100 * now.failed / ended:.1f} %"
    tiles.append(Tile(gettext("Failed"), f"{now.failed:,}", note, alarming=bool(now.failed)))
    return tiles


def _expected(now: Progress, at: datetime) -> Tile:
    title = gettext("Expected end")
    if now.ends_at is not None and now.ends_at_earliest is not None:
        latest = moment_text(now.ends_at_latest, at) if now.ends_at_latest else "?"
        value = format_html(
            '<time datetime="{}" title="{}">{}</time>',
            now.ends_at.isoformat(),
            exact_text(now.ends_at),
            moment_text(now.ends_at, at),
        )
        note = gettext("%(first)s … %(last)s: remaining details at the current rate and its spread")
        first = moment_text(now.ends_at_earliest, at)
        return Tile(title, value, note % {"first": first, "last": latest})
    if now.status != "running":
        why = gettext("not known: no details are starting at the moment")
    elif not now.left:
        why = gettext("all details have ended")
    elif now.pace is None:
        why = gettext("not known before five details have ended within an hour")
    else:
        why = gettext("not known: more than ten years at the current rate")
    return Tile(title, NOTHING, why)


def _details_text(count: int) -> str:
    if not count:
        return ""
    return ngettext("%s detail:", "%s details:", count) % f"{count:,}"


def _failure(group: FailureGroup) -> dict[str, Any]:
    return {
        "details": f"{group.details:,}",
        "task": breakable(group.task),
        "error": group.error.rpartition(".")[2] or NOTHING,
        "error_path": group.error,
        "message": group.message.strip().partition("\n")[0][:200],
        "last": moment(group.last_at),
        "example": job_link(group.example_id),
    }


def _left_out(now: Progress, failures: Sequence[FailureGroup]) -> str:
    if not failures:
        return ""
    looked_at = failures[0].looked_at
    told = []
    if looked_at < now.failed:
        values = {"some": f"{looked_at:,}", "all": f"{now.failed:,}"}
        told.append(gettext("of the newest %(some)s of %(all)s failed details") % values)
    if sum(group.details for group in failures) < looked_at:
        told.append(gettext("the %d largest groups") % len(failures))
    return ", ".join(told)
