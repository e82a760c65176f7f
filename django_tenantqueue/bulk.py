"""Actions on all jobs that match a filter, performed by a job in the queue ADMIN_QUEUE.

The job applies the filters again when it runs, with the code of the list of jobs. It works in
batches, reports its progress, and continues where it stopped after a crash, a cancellation or an
error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model
from django.utils import timezone
from django.utils.formats import localize
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from .batch_sizes import BATCH
from .conf import get_settings
from .exceptions import Cancelled, InvalidArgument, Permanent
from .execution.current_job import current_job
from .models import Job
from .operations.actor import acting_as, current_actor
from .operations.bulk import Bulk, Claim, Tally, act_on, finish, resume
from .operations.bulk_actions import ACTIONS, TASK_PREFIX, find_action
from .operations.queues import make_queue
from .states import Priority
from .status.display_limits import TOTAL_COUNTED_TO
from .status.figures import NOTHING
from .status.job_conditions import absolute
from .status.job_filters import COUNT_PAGE, LABELS, count_matching, read_filters
from .status.visible import tenants_of, visible_jobs
from .tasks import InternalTask

COUNTED_TO = TOTAL_COUNTED_TO * 100
"""Jobs that a run counts before it begins. With more, its progress has no percentage."""
REASONS: dict[str, Any] = {
    "monitor_cancelled": _("their monitors were cancelled"),
    "arguments_removed": _("their arguments were removed by a retention rule"),
    "waits_for_details": _("they wait for the details of their monitors: cancel the monitors"),
    "waits_for_no_time": _("they are not waiting for a scheduled time"),
    "changed_meanwhile": _("they changed meanwhile"),
    "counted_by_monitor": _("they belong to monitors"),
    "no_such_queue": _("their tenants have no such queue that accepts jobs"),
    "bound_to_tenant": _("they have a session, user limit, key or monitor of their tenant"),
    "bulk_action": _("they are bulk actions themselves: retry each on its page"),
    "locked": _("their rows stayed locked"),
}
"""Why jobs are skipped."""


def start(
    action: str,
    filters: Mapping[str, str],
    values: Mapping[str, Any] | None = None,
    *,
    user: Model | None = None,
) -> Job:
    """Enqueue a job that performs `action` on all jobs that match, and return it.

    `action`: "retry", "cancel", "run_now", "change_priority" (with `values` {"priority": 120}),
    "move" ({"queue": "mail"}, and "tenant" to change it, "" for none) or "delete". `filters` are
    those in the URL of the list of jobs: state, tenant, queue, queue_id, task, q, and more. Jobs
    that are created later do not match. `user`: the job is limited to what this user may see.
    Permissions are not checked; the caller must do so. The audit log names the actor of
    acting_as(). Raises InvalidOption, InvalidArgument, QueueRetired, QueueFull.
    """
    settings = get_settings()
    chosen = find_action(action)
    wanted = chosen.check(values or {})
    given = clean_filters(filters)
    tenants = None if user is None else tenants_of(user)
    if problem := read_filters(settings.database, given, tenants=tenants).problem:
        raise InvalidArgument(problem)
    goal = wanted.get("tenant")
    if tenants is not None and goal is not None and goal not in tenants:
        text = gettext("You are not allowed to see tenant “%s”.")
        raise InvalidArgument(text % (goal or NOTHING))
    tenant = tenant_of_bulk(given, tenants)
    make_queue(settings.database, tenant, settings.admin_queue, num_slots=1)
    actor = current_actor()
    user_id = None if user is None else str(user.pk)
    return TASKS[action].enqueue(
        {"tenant": tenant, "queue": settings.admin_queue, "created_by": user_id},
        filters=given,
        values=wanted,
        user_id=user_id,
        actor=[actor.name, str(actor.source)],
    )


def tenant_of_bulk(filters: Mapping[str, str], tenants: Collection[str] | None) -> str:
    """Return the tenant in whose queue a bulk action runs: one that its user sees.

    Raises InvalidArgument for a user who sees none.
    """
    if tenants is None:
        return ""
    if not tenants:
        raise InvalidArgument(gettext("You are not allowed to see any tenant."))
    return filters.get("tenant", min(tenants))


def clean_filters(filters: Mapping[str, str]) -> dict[str, str]:
    """Return the filters in one order, with times that do not depend on now or on a time zone.

    Raises InvalidArgument for unknown, empty and wrong ones.
    """
    if unknown := [name for name in filters if name not in LABELS]:
        text = gettext("There is no filter %(name)r: known are %(known)s.")
        raise InvalidArgument(text % {"name": unknown[0], "known": ", ".join(LABELS)})
    given = absolute({name: str(filters[name]) for name in LABELS if name in filters})
    if empty := [name for name, text in given.items() if not text.strip() and name != "tenant"]:
        text = gettext("The filter %r is empty: give a value, or leave it out.")
        raise InvalidArgument(text % empty[0])
    return given


def _task_of(action: str) -> InternalTask[dict[str, Any]]:
    def change_matching_jobs(
        filters: dict[str, str], values: dict[str, Any], user_id: str | None, actor: list[str]
    ) -> dict[str, Any]:
        """Do the action to all jobs that match; see start(). Return how many changed, and left."""
        bulk = _prepared(action, filters, values, user_id)
        with acting_as(*actor):
            tally = resume(bulk)
            try:
                tally = _walk(bulk, tally)
            except Cancelled as error:
                raise Cancelled(_stopped_text(resume(bulk))) from error
            finish(bulk)
        return {"changed": tally.changed, "left": tally.left}

    return InternalTask(
        change_matching_jobs,
        name=f"{TASK_PREFIX}{action}",
        max_attempts=20,
        timeout=86_400.0,  # a run that passes it continues in another attempt
        priority=Priority.ADMIN,
    )


TASKS = {action: _task_of(action) for action in ACTIONS}
"""One task for each action, so that the list of jobs names what is done."""


def _prepared(
    action: str, filters: Mapping[str, str], values: Mapping[str, Any], user_id: str | None
) -> Bulk:
    using = get_settings().database
    chosen = find_action(action)
    user = tenants = None
    if user_id is not None:
        user = get_user_model()._default_manager.filter(pk=user_id).first()
        if user is None:
            raise Permanent(f"user {user_id} does not exist any more: what they may see is unknown")
        if not user.is_active:
            raise Permanent(f"user {user_id} is not active any more: no further jobs were changed")
        tenants = tenants_of(user)
    asked = read_filters(using, filters, tenants=tenants)
    if asked.problem:
        raise Permanent(asked.problem)
    claimed = current_job()._claimed
    created = Job.objects.using(using).unfinished().filter(pk=claimed.id)
    return Bulk(
        using=using,
        action=chosen,
        values=values,
        filters={name: filters[name] for name in LABELS if name in filters},  # JSON has no order
        asked=asked.narrowed(chosen.states),
        jobs=visible_jobs(using, tenants),
        tenants=tenants,
        until=created.values_list("created_at", flat=True).first() or timezone.now(),
        claim=Claim(claimed.id, claimed.claim_seq),
    )


def _walk(bulk: Bulk, tally: Tally) -> Tally:
    running = current_job()
    asked = bulk.asked.below(tally.before)
    rest = count_matching(bulk.using, asked, most=COUNTED_TO, pages=2 * COUNTED_TO // COUNT_PAGE)
    total = tally.seen + rest.jobs if rest.is_exact else None
    while True:
        done = tally.seen
        running.progress(done, None if total is None else max(total, done), tally_text(tally))
        page = next(bulk.asked.below(tally.before).walk(bulk.using, size=BATCH))
        tally = act_on(bulk, page.ids, page.older or 0, tally)
        if not tally.before:
            break
    with suppress(Cancelled):  # too late: all is done
        running.progress(tally.seen, tally.seen, tally_text(tally))
    return tally


def tally_text(tally: Tally) -> str:
    """Return what was done, as a sentence."""
    text = ngettext("%s job changed.", "%s jobs changed.", tally.changed) % localize(tally.changed)
    for reason, count in tally.left.items():
        left = ngettext("%(count)s skipped: %(why)s.", "%(count)s skipped: %(why)s.", count)
        text += " " + left % {"count": localize(count), "why": REASONS.get(reason, reason)}
    return text


def _stopped_text(tally: Tally) -> str:
    return gettext("Stopped. %s A retry continues from here.") % tally_text(tally)
