"""Who has set a column, from the audit log."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from ...models import Change
from ..changes import changes_of
from ..conditions import Code
from ..display_limits import LISTED
from .answer import Cause, Operator, cause_of
from .names import Named, target_of


def who_set(row: Model, column: str, value: Any) -> Operator | None:
    """Return who set a column to its current value; None: the audit log does not know.

    Raw SQL leaves no entry. A newer entry with another value shows that it was used since.
    """
    for change in _changes(row):
        if column in change.after:
            return _operator(change) if change.after[column] == value else None
    return None


def set_cause(code: Code, row: Named, column: str, told: Any = None) -> Cause:
    """Return the cause that a column of a row has its value, with who has set it."""
    done_by = who_set(row, column, getattr(row, column))
    return cause_of(code, target=target_of(row), told=told, done_by=done_by)


def who_did(row: Model, action: Change.Action) -> Operator | None:
    """Return who did this last; None: the audit log does not know."""
    return next((_operator(change) for change in _changes(row) if change.action == action), None)


def _changes(row: Model) -> list[Change]:
    return changes_of(row._state.db or "default", row, most=LISTED)


def _operator(change: Change) -> Operator:
    return Operator(change.actor, change.get_source_display(), change.made_at)
