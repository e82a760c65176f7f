"""Actions of the list of jobs on all jobs that match: the page that asks, and the job it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.contrib import messages
from django.db.models import Model
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.formats import date_format, localize
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .. import bulk
from ..conf import get_settings
from ..exceptions import InvalidArgument, QueueFull, QueueRetired
from ..models import Job, TenantQueue
from ..operations.bulk_actions import find_action
from ..queries.lists import read_in_order
from ..status.display_limits import TOTAL_COUNTED_TO
from ..status.explanation.worker_causes import worker_causes
from ..status.job_conditions import TIMES, read_moment
from ..status.job_filters import (
    COUNT_PAGE,
    LABELS,
    STATE_LABELS,
    Count,
    count_matching,
    read_filters,
)
from .base import PAGE_PARAMETERS, TenantQueueModelAdmin
from .confirmation import ask, is_answered
from .job_forms import MoveAllForm, PriorityForm
from .job_list_filters import given_filters
from .links import job_url
from .tenant_input import tenant_text
from .visible import visible_tenants

COUNTED_PAGES = TOTAL_COUNTED_TO * 3 // 2 // COUNT_PAGE
"""Reads of a count. They end it where few of many jobs match."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the page says before an action on all jobs that match."""

    title: Any
    text: Any
    yes: Any


QUESTIONS: dict[str, Question] = {
    "retry": Question(
        _("Retry all jobs that match?"),
        _(
            "Jobs that failed or were cancelled become ready again, with fresh attempts. Jobs of a "
            "cancelled monitor are left as they are."
        ),
        _("Yes, retry all that match"),
    ),
    "cancel": Question(
        _("Cancel all jobs that match?"),
        _("Waiting jobs end now and never start. Running jobs are asked to stop."),
        _("Yes, cancel all that match"),
    ),
    "run_now": Question(
        _("Run all jobs that match now?"),
        _("Scheduled jobs become ready. Other jobs are skipped."),
        _("Yes, run all that match now"),
    ),
    "change_priority": Question(
        _("Change the priority of all jobs that match?"),
        _("Waiting jobs get the new priority. A lower number runs first."),
        _("Yes, change all that match"),
    ),
    "move": Question(
        _("Move all jobs that match?"),
        _("Waiting jobs move to this queue. It must exist and accept jobs."),
        _("Yes, move all that match"),
    ),
    "delete": Question(
        _("Delete all finished jobs that match?"),
        _(
            "Finished jobs are deleted permanently, with their results and errors. Jobs of "
            "monitors are left as they are."
        ),
        _("Yes, delete all that match"),
    ),
}


def act_on_all(
    model_admin: TenantQueueModelAdmin[Job], request: HttpRequest, action: str
) -> HttpResponse | None:
    """Return a page that asks; after a “Yes” start the job and go to its page.

    None: back to the list, with a message. The caller has checked the permission.
    """
    using = model_admin.using
    try:
        filters = bulk.clean_filters(_given(request))
        asked = read_filters(using, filters, tenants=visible_tenants(request))
        if asked.problem:
            raise InvalidArgument(asked.problem)
        tenant = bulk.tenant_of_bulk(filters, visible_tenants(request))
    except InvalidArgument as error:
        model_admin.message_user(request, str(error), messages.ERROR)
        return None
    narrowed = asked.narrowed(find_action(action).states)
    if narrowed.filter.states == frozenset():
        text = gettext("This action does not apply to jobs in this state.")
        model_admin.message_user(request, text, messages.WARNING)
        return None
    form = _form(using, action, filters, request)
    if is_answered(request) and (form is None or form.is_valid()):
        values = {} if form is None else {k: v for k, v in form.cleaned_data.items() if v != ""}
        return _started(model_admin, request, action, filters, values)
    with read_in_order(using):  # one transaction for all pages
        count = count_matching(using, narrowed, most=TOTAL_COUNTED_TO, pages=COUNTED_PAGES)
    if not count.jobs and count.is_exact:
        text = gettext("This action does not apply to any matching job.")
        model_admin.message_user(request, text, messages.WARNING)
        return None
    question = QUESTIONS[action]
    return ask(
        model_admin,
        request,
        filter_texts(filters) or [gettext("no filter: all jobs")],
        title=question.title,
        text=question.text,
        yes=question.yes,
        heading=count_text(count),
        notes=[note] if (note := queue_note(using, tenant)) else [],
        form=form,
    )


def _given(request: HttpRequest) -> dict[str, str]:
    names = [name for name in request.GET if name not in PAGE_PARAMETERS]
    return given_filters({name: request.GET[name] for name in names})


def _form(using: str, action: str, filters: Mapping[str, str], request: HttpRequest) -> Form | None:
    data = request.POST if is_answered(request) else None
    if action == "change_priority":
        return PriorityForm(data)
    if action == "move":
        return MoveAllForm(using, data, visible=visible_tenants(request))
    return None


def _started(
    model_admin: TenantQueueModelAdmin[Job],
    request: HttpRequest,
    action: str,
    filters: Mapping[str, str],
    values: Mapping[str, Any],
) -> HttpResponse | None:
    try:
        job = bulk.start(action, filters, values, user=cast("Model", request.user))
    except (QueueFull, QueueRetired) as error:
        model_admin.message_user(request, str(error), messages.ERROR)
        return None
    if job.final:  # TENANTQUEUE["EAGER"]
        model_admin.message_user(request, gettext("Done."), messages.SUCCESS)
        return None
    text = gettext(
        "This job performs the action. Its page shows the progress. To stop the action, cancel "
        "the job."
    )
    model_admin.message_user(request, text, messages.SUCCESS)
    return HttpResponseRedirect(job_url(job.pk, model_admin.admin_site))


def count_text(count: Count) -> str:
    """Return how many jobs an action will change."""
    number = localize(count.jobs)
    if count.is_exact:
        return gettext("Jobs that match and can be changed: %s. Filters:") % number
    if count.jobs >= TOTAL_COUNTED_TO:
        return gettext("Jobs that match and can be changed: more than %s. Filters:") % number
    return (
        gettext("Jobs that match and can be changed: at least %s (not all were counted). Filters:")
        % number
    )


def filter_texts(filters: Mapping[str, str]) -> list[str]:
    """Return the filters in force as people read them."""
    texts = dict(filters)
    if "state" in texts:
        texts["state"] = str(dict(STATE_LABELS).get(texts["state"], texts["state"]))
    for name in TIMES.keys() & texts.keys():
        moment = timezone.localtime(read_moment(texts[name]))
        texts[name] = date_format(moment, "DATETIME_FORMAT")
    if "tenant" in texts:
        texts["tenant"] = tenant_text(texts["tenant"])
    return [
        gettext("%(filter)s: %(value)s") % {"filter": LABELS[name], "value": text}
        for name, text in texts.items()
    ]


def queue_note(using: str, tenant: str = "") -> str:
    """Return why jobs of bulk actions would not start now; "" when they would."""
    name = get_settings().admin_queue
    queue = TenantQueue.objects.using(using).filter(tenant=tenant, name=name).first()
    if queue is None:
        queue = TenantQueue(tenant=tenant, name=name)
    elif queue.paused or queue.num_slots == 0:
        text = gettext("The action waits: its queue “%s” is paused or has no slots.")
        return text % name
    causes = worker_causes(using, Job(is_async=False), queue, timezone.now(), ready=False)
    return " ".join(f"{cause.sentence} {cause.remedy}" for cause in causes)
