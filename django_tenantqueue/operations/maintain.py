"""The maintenance of the fleet. Each duty is one bounded step."""

from __future__ import annotations

import json
import logging
from datetime import UTC, date, datetime, timedelta

import psycopg
from django.db import transaction
from django.db.models.functions import Now

from ..batch_sizes import BATCH
from ..conf import get_settings
from ..exceptions import Cancelled
from ..features import Feature, hooks
from ..models import Change
from ..queries import control, enqueue, figures, statistics
from ..queries.base import Where, fetch
from ..stored_error import stored_error
from . import history
from .changes import Entry
from .gates import cancel_waiting, keys_of, release_and_wake

logger = logging.getLogger("django_tenantqueue")

FIGURES_KEPT = (
    (1, 60, timedelta(hours=3)),
    (60, 1440, timedelta(days=8)),
    (1440, None, timedelta(days=400)),
)
"""Minutes of a row, minutes of the row that it is merged into (None: dropped), and its age then."""


def promote(using: str) -> int:
    """Make due jobs ready and wake workers for them; return how many."""
    promoted = control.promote_jobs(using, most=BATCH)
    settings = get_settings()
    gated = [job for job in promoted.values() if job.limit_user or job.exclusive]
    if len(promoted) > len(gated) and settings.notify:
        enqueue.wake_any_workers(using, most=len(promoted) - len(gated))
    if gated:
        release_and_wake(using, keys_of(gated))
    return len(promoted)


def expire(using: str, look: Where | None = None) -> int:
    """Cancel waiting jobs that have expired, in any line or queue; return how many.

    All effects of a cancellation follow. A step is full when it has found BATCH. `look` is a
    connection for reads that keeps its plans; None: read on `using`.
    """
    ids = control.find_expired(look or using, most=BATCH)
    if not ids:
        return 0
    error = json.dumps(stored_error(Cancelled, "it expired before it could start"))
    expired = cancel_waiting(using, ids, error=error)
    release_and_wake(using, keys_of(expired.values()))
    return len(expired)


def prune_changes(using: str) -> int:
    """Delete changes older than CHANGES_KEEP_DAYS days; return how many."""
    keep = get_settings().changes_keep_days
    if keep is None:
        return 0
    changes = Change.objects.using(using)
    with transaction.atomic(using=using):
        oldest = changes.order_by("pk").select_for_update(skip_locked=True)
        ids = list(oldest.values_list("pk", flat=True)[:BATCH])
        old = changes.filter(pk__in=ids, made_at__lt=Now() - timedelta(days=keep))
        return old.delete()[0]


def make_history(using: str, today: date | None = None) -> list[str]:
    """Create the missing history leaves of this and the coming months; return their names.

    Months with jobs in the default leaf get theirs, too: retention rules do not read that one. A
    leaf that cannot be created now, because the whole history is being read, is retried later.
    """
    months = [(today or datetime.now(UTC).date()).replace(day=1)]
    for _ in range(get_settings().history_ahead_months):
        months.append(history.next_month(months[-1]))
    have = {leaf.month for leaf in history.list_leaves(using)}
    made = []
    for month in dict.fromkeys((*months, *history.list_stray_months(using))):
        if month not in have:
            try:
                if history.make_leaf(using, month):
                    made.append(history.leaf_name(month))
            except psycopg.errors.LockNotAvailable as error:
                logger.info(
                    "creating the history partition of %s failed, retrying: %s", month, error
                )
    return made


def drop_history(using: str, today: date | None = None) -> list[str]:
    """Drop the months in which no job is kept; return their leaves.

    A leaf is emptied first, which only its own readers can hold up, and dropped when that takes
    no waiting either; what is left over is tried at the next round.
    """
    now = None if today is None else datetime(today.year, today.month, today.day, tzinfo=UTC)
    dropped = []
    for leaf in history.dropped_whole(using, now):
        try:
            history.empty_leaf(using, leaf)
            if history.drop_leaf(using, leaf):
                dropped.append(leaf.name)
        except psycopg.errors.LockNotAvailable as error:
            logger.info("dropping history partition %s failed, retrying: %s", leaf.name, error)
    return dropped


def refresh_statistics(using: str) -> list[str]:
    """Replace plans that were made when a table was far smaller; return these tables.

    Prepared statements keep their plans; one that was made for a few rows reads a whole table.
    """
    grown = statistics.find_grown_tables(using)
    for table in grown:
        statistics.refresh_size(using, table)
    return grown


def relane(using: str, most: int = 5000, *, entry: Entry | None = None) -> int:
    """Give up to `most` waiting jobs the lane that PRIORITY_SCOPE asks for; return how many.

    `entry` is what they are added to, of all steps together.
    """
    scope = get_settings().priority_scope
    with transaction.atomic(using=using):
        params = {"by_tenant": scope == "tenant", "most": most}
        ids = [job_id for (job_id,) in fetch(using, "relane_jobs", params)]
        if entry is not None:
            entry.add(ids, after={"priority_scope": scope})
    return len(ids)


def thin_figures(using: str, now: datetime | None = None) -> int:
    """Merge old minutes of the figures into hours, and old hours into days; drop old days.

    Features take what they need of the minutes first. Return how many rows were merged or dropped;
    a step is full with BATCH.
    """
    moment = now or datetime.now(UTC)
    taken, more = moment, False
    for take in hooks(Feature.before_thinning):
        until, has_more = take(using, now)
        taken, more = min(taken, until), more or has_more
    done = 0
    for minutes, into, keep in FIGURES_KEPT:
        whole = timedelta(minutes=into or minutes)
        old = moment - keep
        if minutes == 1:
            old = min(old, taken)
        before = old - (old - datetime(1970, 1, 1, tzinfo=UTC)) % whole
        done += figures.thin_figures(
            using, minutes=minutes, into=into, before=before, most=BATCH - done
        )
    return BATCH if more else done


def seconds_to_next_due(where: Where) -> float | None:
    """Return the seconds until the next scheduled job is due; None: there is none."""
    seconds: float | None = fetch(where, "next_due", {})[0][0]
    return seconds
