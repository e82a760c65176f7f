"""One action on all jobs that match a filter: each batch in a transaction, one entry for all.

The first batch that changes something writes the entry of the audit log, and each later one updates
it in its own transaction. So its count is true at any moment, and a run that takes over from a dead
worker continues from it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from ..exceptions import ClaimLost
from ..models import Change, Job
from ..models.job_query import JobQuerySet
from ..queries.enqueue import LOCKED_SECONDS
from ..queries.lists import NEWEST
from ..states import FINAL
from ..status.job_filters import Asked
from .bulk_actions import READ, BulkAction, Done, Left
from .changes import LONGEST_LABEL, MOST_IDS, new_change

PAUSES = tuple(10 * pause for pause in LOCKED_SECONDS)
"""Seconds before each further attempt to change jobs whose rows are locked: by a claim, mostly."""
DOWN_TO = "down_to"
"""The key of an unfinished entry for the id down to which jobs were processed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The run that acts: its job and the number of its claim."""

    job_id: int
    claim_seq: int


@dataclass(frozen=True, slots=True)
class Bulk:
    """A bulk action. `jobs` are those that its user may see; `until`: created before that."""

    using: str
    action: BulkAction
    values: Mapping[str, Any]
    filters: Mapping[str, str]
    asked: Asked
    jobs: JobQuerySet
    until: datetime
    claim: Claim
    tenants: Collection[str] | None = None
    """Tenants that its user sees; None: all."""

    @property
    def label(self) -> str:
        """What the entry is called, and found by: the job that does it, and its filters."""
        said = ", ".join(f"{name}={value}" for name, value in self.filters.items())
        return f"job #{self.claim.job_id}: {said or 'all'}"[:LONGEST_LABEL]

    @property
    def tenant(self) -> str:
        """The tenant of the jobs, where the filters name one, or its user sees one alone."""
        if self.asked.queue is not None:
            return self.asked.queue.tenant
        only = next(iter(self.tenants)) if self.tenants and len(self.tenants) == 1 else ""
        return self.filters.get("tenant", only)


@dataclass(frozen=True, slots=True)
class Tally:
    """Progress of a bulk action: what it changed and skipped, and the id below which the rest
    is."""

    changed: int = 0
    left: Left = field(default_factory=dict)
    before: int = NEWEST

    @property
    def seen(self) -> int:
        """How many jobs were processed."""
        return self.changed + sum(self.left.values())

    def plus(self, changed: int, left: Left, before: int) -> Tally:
        """Return the tally after another batch."""
        names = (*self.left, *left)
        sums = {name: self.left.get(name, 0) + left.get(name, 0) for name in names}
        return Tally(self.changed + changed, sums, before)


def resume(bulk: Bulk) -> Tally:
    """Return how far earlier runs of the same job have come."""
    change = _entries(bulk).first()
    return Tally() if change is None else _read(bulk, change)


def _read(bulk: Bulk, change: Change) -> Tally:
    after = dict(change.after)
    before = after.pop(DOWN_TO, 0)
    left = {name: count for name, count in after.items() if name not in bulk.values}
    return Tally(change.object_count, left, before)


def act_on(bulk: Bulk, ids: Sequence[int], before: int, tally: Tally) -> Tally:
    """Change a batch of at most BATCH jobs; return the tally. The next batch is below `before`.

    Locks: the entry, or the row of its own job while there is no entry; then the rows of the jobs
    in id order, SKIP LOCKED. Rows that others hold are tried again a few times, in transactions of
    their own. A batch that another run of the same job has done is not done again. Raises
    ClaimLost.
    """
    pauses = iter((*PAUSES, None))
    waiting = list(ids)
    while True:
        pause = next(pauses)
        with transaction.atomic(using=bulk.using):
            change = _entries(bulk).select_for_update(no_key=True).first()
            _check_claim(bulk, is_locking=change is None)
            if change is not None and (found := _read(bulk, change)).before < tally.before:
                return found
            tally, waiting = _change(bulk, change, waiting, before, tally, is_last=pause is None)
        if not waiting or pause is None:
            return tally
        time.sleep(pause)


def finish(bulk: Bulk) -> None:
    """Mark the entry as finished."""
    with transaction.atomic(using=bulk.using):
        change = _entries(bulk).select_for_update(no_key=True).first()
        if change is not None:
            change.after.pop(DOWN_TO, None)
            change.save(using=bulk.using, update_fields=["after"])


def _check_claim(bulk: Bulk, *, is_locking: bool) -> None:
    """Raise ClaimLost where another run has the job.

    `is_locking`: until the end of the transaction it cannot be taken over.
    """
    if bulk.claim.job_id < 0:  # eager: there is no row
        return
    own = Job.objects.using(bulk.using).unfinished()
    rows = own.filter(pk=bulk.claim.job_id, claim_seq=bulk.claim.claim_seq)
    if is_locking:
        rows = rows.select_for_update(no_key=True)
    if not rows.values_list("pk").first():
        raise ClaimLost(f"job {bulk.claim.job_id} was taken from this run")


def _change(
    bulk: Bulk,
    change: Change | None,
    ids: Sequence[int],
    before: int,
    tally: Tally,
    *,
    is_last: bool,
) -> tuple[Tally, list[int]]:
    """Change those of `ids` that no other session has locked; return the tally and the others."""
    # The conditions on other columns are checked here: with old statistics, PostgreSQL would read
    # all jobs of a state instead of these.
    chosen = bulk.jobs.filter(pk__in=ids).order_by("pk").only(*READ)
    is_finished = (bulk.asked.filter.states or frozenset()) <= FINAL
    locked = chosen.filter(final=is_finished).select_for_update(skip_locked=True, of=("self",))
    rows = list(locked)
    missing = set(ids) - {row.pk for row in rows}
    others = list(chosen.filter(pk__in=missing)) if missing else []
    given = bulk.asked.filter.queues
    fits = partial(_fits, bulk, None if given is None else frozenset(given))
    busy = [row.pk for row in others if fits(row)]
    moved_on = [row for row in (*rows, *others) if row.created_at < bulk.until and not fits(row)]
    members = [row for row in rows if fits(row)]
    done = bulk.action.act(bulk.using, members, bulk.values) if members else Done((), {})
    counts = Counter(done.left)
    counts["changed_meanwhile"] += len(moved_on)
    if is_last:
        counts["locked"] += len(busy)
    changed = sorted(done.changed)
    goes_on = tally.before if busy and not is_last else before
    tally = tally.plus(len(changed), {name: n for name, n in counts.items() if n}, goes_on)
    _write(bulk, change, changed, tally)
    return tally, busy


def _fits(bulk: Bulk, queues: frozenset[int] | None, row: Job) -> bool:
    return (
        row.created_at < bulk.until
        and row.state in (bulk.asked.filter.states or ())
        and (queues is None or row.queue_id in queues)
    )


def _entries(bulk: Bulk) -> Any:
    return (
        Change.objects.using(bulk.using)
        .filter(object_label=bulk.label, object_kind=Change.Kind.JOB, action=bulk.action.change)
        .order_by("-pk")
    )


def _write(bulk: Bulk, change: Change | None, changed: Sequence[int], tally: Tally) -> None:
    """Write or update the entry, if something was changed."""
    if not tally.changed:
        return
    if change is None:
        change = new_change(bulk.action.change, Change.Kind.JOB, bulk.label, bulk.tenant)
    change.object_count = tally.changed
    change.object_ids = sorted([*change.object_ids, *changed[: MOST_IDS - len(change.object_ids)]])
    change.after = {**bulk.values, **tally.left, DOWN_TO: tally.before}
    change.save(using=bulk.using)
