"""`{% load tenantqueue %}`: the progress of jobs on users' own pages, live."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django import template
from django.core.exceptions import ImproperlyConfigured
from django.template import Context
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..databases import database_of_row
from ..link_tokens import sign_job_id
from ..models import ConcurrentJobMonitor, Job
from ..models.job import bound_token
from ..states import State
from ..status.callback_progress import callback_of
from ..status.figures import duration_text
from ..status.open_links import public_error

register = template.Library()

LABELS = {
    "scheduled": _("scheduled"),
    "retry": _("will be retried"),
    "held": _("waiting"),
    "ready": _("waiting"),
    "queued": _("starting"),
    "running": _("running"),
    "success": _("done"),
    "error": _("failed"),
    "cancelled": _("cancelled"),
    "unknown": _("no longer known"),
}
"""What users read for a state. "retry" and "unknown" are no states: see progress.js."""

_LOADED = "_tenantqueue_progress_loaded"


@dataclass(frozen=True, slots=True)
class Bar:
    """What the template shows of one job. `percent` None: the bar shows no share."""

    title: str
    state: str
    label: str
    message: str
    percent: int | None
    token: str
    url: str
    labels: str
    errors: bool
    reload: bool

    @property
    def value_text(self) -> str:
        """The share and the message, as a screen reader says them."""
        share = "" if self.percent is None else f"{self.percent} %"
        return ", ".join(part for part in (share, self.message) if part)


def make_bar(
    job: Job,
    *,
    title: str = "",
    errors: bool = False,
    reload: bool = False,
    sign: Callable[[int], str] = sign_job_id,
) -> Bar:
    """Return what the template shows of a job. Only a job that has not ended gets a token.

    `sign` makes it of the job's id.
    """
    live = not job.final
    return Bar(
        title=str(title) or _title(job),
        state=State.RUNNING if _shown_state(job) == State.RUNNING else job.state,
        label=str(LABELS[_shown_state(job)]),
        message=_message(job, errors),
        percent=_percent(job),
        token=sign(job.pk) if live else "",
        url=_statuses_url() if live else "",
        labels=json.dumps({name: str(label) for name, label in LABELS.items()}) if live else "",
        errors=errors,
        reload=reload,
    )


def _title(job: Job) -> str:
    """Return the last part of the task's name in words: "Build report"."""
    words = job.task.rpartition(".")[2].replace("_", " ").strip()
    return words[:1].upper() + words[1:] or gettext("Job %d") % job.pk


def _shown_state(job: Job) -> str:
    """Return the state that users read. The callback of a monitor is held while details run."""
    if job.state == State.SCHEDULED and job.attempt > 0:
        return "retry"
    return State.RUNNING if job.state == State.HELD and job.progress_done else job.state


def _message(job: Job, errors: bool) -> str:
    if job.state == State.ERROR and errors:
        return public_error(job) or ""
    return "" if job.final else job.progress_message or ""


def _percent(job: Job) -> int | None:
    if job.state == State.SUCCESS:
        return 100
    if job.progress_percent is not None:
        return int(job.progress_percent)
    return None if job.state == State.RUNNING else 0


def _statuses_url() -> str:
    try:
        return reverse("tenantqueue:statuses")
    except NoReverseMatch as error:
        raise ImproperlyConfigured(
            "The tags of tenantqueue need the addresses of the jobs' statuses: add "
            'path("jobs/", include("django_tenantqueue.web.urls")) to your URLs.'
        ) from error


def _first_of_page(context: Context) -> bool:
    """Whether no tag has loaded the style and the script yet; later tags answer False."""
    first = _LOADED not in context
    context.dicts[0][_LOADED] = True
    return first


def _signer(context: Context, bind: str) -> Callable[[int], str]:
    if not bind:
        return sign_job_id
    request = context.get("request")
    if request is None or bind not in ("user", "browser"):
        raise ImproperlyConfigured(
            f"bind={bind!r} of a tag of tenantqueue: it must be 'user' or 'browser', in a template "
            "that is rendered with its request"
        )
    if bind == "user":
        return lambda job_id: bound_token(job_id, request.user, None)
    return lambda job_id: bound_token(job_id, None, request.session)


@register.inclusion_tag("tenantqueue/job_progress.html", takes_context=True)
def job_progress(
    context: Context,
    job: Job | ConcurrentJobMonitor | None,
    title: str = "",
    errors: bool = False,
    reload: bool = False,
    bind: str = "",
) -> dict[str, Any]:
    """Show state, progress and message of a job or monitor, live; nothing when there is none.

    A monitor is shown until its callback has ended, with the share of its details that have ended.
    `title` is shown above the bar; by default it is made of the task's name. `errors`: show the
    message of the exception when the job fails. `reload`: load the page again when it ends. `bind`:
    "user" or "browser" (its session), whose requests alone can read the status.
    """
    if isinstance(job, ConcurrentJobMonitor):
        title = title or job.name
        job = callback_of(database_of_row(job), job)
    if not job:
        return {"bar": None}
    sign = _signer(context, bind)
    bar = make_bar(job, title=title, errors=errors, reload=reload, sign=sign)
    return {"bar": bar, "load": _first_of_page(context)}


@register.inclusion_tag("tenantqueue/jobs_progress.html", takes_context=True)
def jobs_progress(
    context: Context,
    jobs: Iterable[Job],
    errors: bool = False,
    reload: bool = False,
    bind: str = "",
) -> dict[str, Any]:
    """Show a list of jobs as job_progress shows one. One request follows all of a page."""
    sign = _signer(context, bind)
    bars = [make_bar(job, errors=errors, reload=reload, sign=sign) for job in jobs]
    return {"bars": bars, "load": bool(bars) and _first_of_page(context)}


@register.simple_tag(takes_context=True, name="_page_query")
def _page_query(context: Context, before: int | None) -> str:
    """Return the query string of the page of jobs below an id, or of the newest jobs.

    For your_jobs.html alone.
    """
    request = context.get("request")
    query = request.GET.copy() if request is not None else None
    if query is None:
        return "?" if before is None else f"?before={before}"
    query.pop("before", None)
    if before is not None:
        query["before"] = str(before)
    return f"?{query.urlencode()}"


@register.filter
def tenantqueue_duration(value: Any) -> str:
    """Return a duration with the two units that matter: 1.2 s, 3 min 4 s."""
    return duration_text(value)
