"""The audit log: one entry for each call that changed something.

Each function here is called inside the transaction of the change: there is no change without its
entry, and no entry without its change. An empty entry is not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model, QuerySet

from ..models import Change, Job
from ..models.change import kind_of
from ..status.display_limits import NAMED
from .actor import current_actor

MOST_IDS = 100
"""Ids that an entry keeps, the lowest. An index has them."""
LONGEST_LABEL = 600
"""Characters of the names that an entry keeps. An index takes no more than 2,700 bytes."""

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Edit:
    """What a change has done to one object: some columns, before and after."""

    before: Values
    after: Values

    def changed(self) -> set[str]:
        """Return the names of the columns that have another value now."""
        names = self.before.keys() | self.after.keys()
        return {name for name in names if self.before.get(name) != self.after.get(name)}


@dataclass(slots=True)
class Entry:
    """The entry of one call, written by its first step and added to by the next ones."""

    using: str
    action: str
    kind: str
    label: str = ""
    tenant: str = ""
    change: Change | None = field(default=None, init=False)

    def add(
        self, ids: Iterable[int], *, before: Values | None = None, after: Values | None = None
    ) -> None:
        """Add the edits of a step. Numbers in `after` are added up."""
        found = sorted(ids)
        if not found:
            return
        change = self.change
        if change is None:
            change = self.change = new_change(self.action, self.kind, self.label, self.tenant)
        known = set(change.object_ids)
        change.object_count += len([i for i in found if i not in known])
        change.object_ids = sorted(known | set(found))[:MOST_IDS]
        change.before = _joined(change.before, before or {})
        change.after = _joined(change.after, after or {})
        change.save(using=self.using)


def new_change(action: str, kind: str, label: str, tenant: str) -> Change:
    """Return a new entry of the current actor, without objects. It is not saved."""
    actor = current_actor()
    return Change(
        actor=actor.name,
        source=actor.source,
        action=action,
        object_kind=kind,
        object_count=0,
        object_label=label,
        tenant=tenant,
    )


def _joined(old: dict[str, Any], new: Values) -> dict[str, Any]:
    """Return the merged values of two steps: numbers are counts, other values are listed."""
    joined = dict(old)
    for name, value in new.items():
        if isinstance(value, int) and not isinstance(value, bool):
            joined[name] = joined.get(name, 0) + value
        elif name in joined:
            joined[name] = one_or_list([*_as_list(joined[name]), *_as_list(value)])
        else:
            joined[name] = value
    return joined


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def one_or_list(values: Iterable[Any]) -> Any:
    """Return the value that all have, or the first few different ones."""
    different: list[Any] = []
    for value in values:
        if value not in different:
            different.append(value)
            if len(different) == 10:
                break
    return different[0] if len(different) == 1 else different


def merged(edits: Sequence[Edit]) -> Edit:
    """Return one edit for all of these: of the columns that some of them changed."""
    names = sorted(set().union(*(edit.changed() for edit in edits)))
    return Edit(
        _values(names, [edit.before for edit in edits]),
        _values(names, [edit.after for edit in edits]),
    )


def _values(names: Iterable[str], sides: Sequence[Values]) -> dict[str, Any]:
    found = ((name, [side[name] for side in sides if name in side]) for name in names)
    return {name: one_or_list(values) for name, values in found if values}


def action_of(edit: Edit) -> str:
    """Return the action of a change of columns."""
    names = set(edit.after)
    if "paused" in names and names <= {"paused", "halted_at", "halted_by"}:
        return Change.Action.PAUSE if edit.after["paused"] else Change.Action.RESUME
    if names and names <= {"halted_at", "halted_by"}:
        return Change.Action.RESUME
    if names == {"retired"}:
        return Change.Action.RETIRE if edit.after["retired"] else Change.Action.REOPEN
    if names == {"enabled"}:
        return Change.Action.ENABLE if edit.after["enabled"] else Change.Action.DISABLE
    if "muted_until" in names:
        return Change.Action.MUTE if edit.after["muted_until"] else Change.Action.UNMUTE
    if names == {"revoked_at"}:
        return Change.Action.REVOKE
    if names == {"cancelled_at"}:
        return Change.Action.CANCEL
    if names == {"draining"}:
        return Change.Action.DRAIN
    if names == {"stopping"}:
        return Change.Action.STOP
    return Change.Action.TUNE


def record_edits(using: str, rows: Sequence[Model], edits: Sequence[Edit]) -> None:
    """Write the entry of a call that changed columns of rows of one kind."""
    pairs = [(row, edit) for row, edit in zip(rows, edits, strict=True) if edit.changed()]
    if pairs:
        whole = merged([edit for _, edit in pairs])
        record_rows(using, action_of(whole), [row for row, _ in pairs], whole)


def record_rows(using: str, action: str, rows: Sequence[Model], edit: Edit) -> None:
    """Write the entry of a call that did something to these rows, which are of one kind."""
    if not rows:
        return
    kind = kind_of(rows[0])
    assert kind is not None, "operations change rows of these kinds alone"
    entry = Entry(using, action, kind, label_of(rows), _tenant_of(rows))
    entry.add([row.pk for row in rows], before=edit.before, after=edit.after)


def label_of(rows: Sequence[Model]) -> str:
    """Return the names of rows, the first few of them."""
    names = [str(row) for row in rows[:NAMED]]
    text = ", ".join(names) + (", …" if len(rows) > NAMED else "")
    return text[:LONGEST_LABEL]


def _tenant_of(rows: Sequence[Model]) -> str:
    tenants = {getattr(row, "tenant", None) or "" for row in rows}
    return tenants.pop() if len(tenants) == 1 else ""


def entry_of_jobs(using: str, action: str, jobs: QuerySet[Job], ids: Iterable[int]) -> Entry:
    """Return the entry of a call that changes those of `jobs`: they are read before the change.

    It has their name and tenant, each "" unless all of them have the same one. No job is left out:
    users who see one tenant are shown the entries of that tenant.
    """
    chosen = jobs.filter(pk__in=list(ids)).order_by()
    names, tenants = (
        list(chosen.values_list(column, flat=True).distinct()[:2])
        for column in ("task", "queue__tenant")
    )
    name = names[0] if len(names) == 1 else ""
    tenant = (tenants[0] or "") if len(tenants) == 1 else ""
    return Entry(using, action, Change.Kind.JOB, name, tenant)


def record_jobs(using: str, action: str, edits: Mapping[int, Edit]) -> None:
    """Write the entry of a call that changed columns of unfinished jobs, by their ids."""
    touched = {job_id: edit for job_id, edit in edits.items() if edit.changed()}
    if not touched:
        return
    whole = merged(list(touched.values()))
    entry = entry_of_jobs(using, action, Job.objects.using(using).unfinished(), touched)
    entry.add(touched, before=whole.before, after=whole.after)
