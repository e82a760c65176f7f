"""Changes of retention rules. They take effect at the next step of maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...conf import alias_of
from ...operations.tuning import Ids, add_row, check_columns, delete_rows, ids_of, tune_rows
from .models import DAYS, RetentionRule

TUNABLE = DAYS
"""Columns of a rule that operators change."""


def make_retention_rule(
    *,
    tenant: str | None = None,
    task: str = "",
    state: str = "",
    using: str | None = None,
    **days: int | None,
) -> RetentionRule:
    """Create a rule and return it.

    `tenant`: None is every tenant, "" is for jobs without one. `days`: keep_days, arguments_days,
    results_days, errors_days. Raises InvalidOption for an unknown name, and Django's
    ValidationError for a wrong value, or if such a rule exists.
    """
    check_columns(days, TUNABLE)
    row = RetentionRule(tenant=tenant, task=task, state=state, **days)
    add_rule(row, using=using)
    return row


def add_rule(row: RetentionRule, *, using: str | None = None) -> None:
    """Check a new row, write it, and record it. Raises Django's ValidationError."""
    alias = alias_of(using)
    row._state.db = alias
    row.full_clean(exclude=("id", "created_at"))
    add_row(alias, row, TUNABLE)


def tune_rule(ids: Ids, *, using: str | None = None, **changes: Any) -> Sequence[int]:
    """Change columns of rules that are TUNABLE; return the ids of the changed ones.

    Only the given columns are written. Raises InvalidOption for an unknown column, Django's
    ValidationError for a wrong value, and RetentionRule.DoesNotExist.
    """
    return tune_rows(alias_of(using), RetentionRule, ids, changes, TUNABLE).changed


def delete_rules(ids: Ids, *, using: str | None = None) -> list[int]:
    """Delete rules; return their ids."""
    chosen = RetentionRule.objects.filter(pk__in=ids_of(ids, RetentionRule))
    return [row.pk for row in delete_rows(alias_of(using), chosen, DAYS)]
