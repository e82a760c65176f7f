"""Changes that operators and code make to alert rules. Each acts at the next check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from ...conf import alias_of
from ...exceptions import InvalidOption
from ...models import Change
from ...operations.changes import Edit, record_edits, record_rows
from ...operations.tuning import Ids, check_columns, delete_rows, ids_of, row_of, switch_rows
from ...status.masking import MASK
from .models import Alert, AlertRule, watched

TUNABLE = (
    *("name", "kind", "threshold", "range_minutes", "tenant", "queue", "task"),
    *("webhook_url", "webhook_format", "webhook_secret", "emails", "log"),
    *("tell_resolved", "repeat_minutes", "max_per_hour"),
    *("quiet_from", "quiet_until", "time_zone", "enabled"),
)
"""Columns of a rule that operators change."""


def make_alert_rule(name: str, kind: str, *, using: str | None = None, **columns: Any) -> AlertRule:
    """Write a new rule and return it.

    `kind`: the code of a condition. `columns`: any of the others in TUNABLE. Raises InvalidOption
    for another kind or column and Django's ValidationError, also when the tenant has a rule of
    this name.
    """
    check_columns(columns, TUNABLE)
    _check_kind(kind)
    row = AlertRule(name=name, kind=kind, **columns)
    add_alert_rule(row, using=using)
    return row


def _check_kind(kind: str) -> None:
    if kind not in watched():
        raise InvalidOption(f"kind={kind!r}: it must be one of {', '.join(watched())}")


def add_alert_rule(row: AlertRule, *, using: str | None = None) -> None:
    """Check a new row, write it, and record it. Raises Django's ValidationError."""
    alias = alias_of(using)
    row._state.db = alias
    row.full_clean(exclude=("id", "created_at", "next_at"))
    with transaction.atomic(using=alias):
        row.save(using=alias, force_insert=True)
        values = _shown({name: getattr(row, name) for name in TUNABLE}, row.shown_url)
        given = {n: v for n, v in values.items() if v not in (None, "", False)}
        record_rows(alias, Change.Action.ADD, [row], Edit({}, given))


def tune_alert_rule(rule_id: int, *, using: str | None = None, **changes: Any) -> None:
    """Change columns of a rule; it is checked again at once.

    Only the named columns are written. The alerts of a rule that is disabled, or gets another kind,
    are resolved without a message. Raises InvalidOption for another kind or column and
    Django's ValidationError for bad values; AlertRule.DoesNotExist.
    """
    alias = alias_of(using)
    check_columns(changes, TUNABLE)
    if "kind" in changes:
        _check_kind(changes["kind"])
    with transaction.atomic(using=alias):
        row = row_of(AlertRule.objects.using(alias).select_for_update(no_key=True), rule_id)
        before = {name: getattr(row, name) for name in changes}
        changed = Edit(before, changes).changed()
        if not changed:
            return
        old_url = row.shown_url
        for name, value in changes.items():
            setattr(row, name, value)
        row.full_clean(exclude=("id", "created_at", "next_at"))
        row.next_at = timezone.now()
        row.save(using=alias, update_fields=[*changed, "next_at"])
        if not row.enabled or "kind" in changed:
            _resolve(alias, [row.pk])
        record_edits(alias, [row], [_edit(before, changes, changed, old_url, row.shown_url)])


def _edit(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    changed: set[str],
    old_url: str,
    new_url: str,
) -> Edit:
    """Return what an entry of the audit trail says: that a secret is new, but not what it is."""
    old = _shown({name: before[name] for name in changed}, old_url)
    new = _shown({name: after[name] for name in changed}, new_url)
    hidden = [name for name in changed if old[name] == new[name]]
    return Edit(old, {**new, **{name: f"{new[name]} (new)" for name in hidden}})


def _shown(values: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return values without what is secret in them."""
    hidden = {"webhook_url": url, "webhook_secret": MASK}
    return {n: hidden[n] if n in hidden and value else value for n, value in values.items()}


def _resolve(using: str, rules: Iterable[int]) -> None:
    alerts = Alert.objects.using(using).filter(rule__in=list(rules))
    alerts.filter(pending=True).update(pending=False)
    alerts.filter(resolved_at__isnull=True).update(resolved_at=timezone.now())


def enable_alert_rules(ids: Ids, *, using: str | None = None) -> int:
    """Let rules be checked; return how many were disabled before."""
    return _switch(ids, using, enabled=True)


def disable_alert_rules(ids: Ids, *, using: str | None = None) -> int:
    """Let rules be checked no more; return how many were enabled before.

    Their open alerts are resolved without a message.
    """
    return _switch(ids, using, enabled=False)


def _switch(ids: Ids, using: str | None, *, enabled: bool) -> int:
    alias = alias_of(using)
    with transaction.atomic(using=alias):
        chosen = AlertRule.objects.filter(pk__in=ids_of(ids, AlertRule), enabled=not enabled)
        keys = [row.pk for row in switch_rows(alias, chosen, {"enabled": enabled})]
        AlertRule.objects.using(alias).filter(pk__in=keys).update(next_at=timezone.now())
        if not enabled:
            _resolve(alias, keys)
    return len(keys)


def delete_alert_rules(ids: Ids, *, using: str | None = None) -> int:
    """Delete rules with their alerts; return how many there were. Messages on their way fail."""
    chosen = AlertRule.objects.filter(pk__in=ids_of(ids, AlertRule))
    return len(delete_rows(alias_of(using), chosen, ["kind"]))
