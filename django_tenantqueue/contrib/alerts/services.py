"""Changes that operators and code make to alert rules. Each acts at the next check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from ...conf import alias_of
from ...databases import check_home
from ...exceptions import InvalidOption
from ...operations.actor import current_actor
from ...operations.changes import Edit, record_edits
from ...operations.mutes import read_end, read_reason
from ...operations.tuning import (
    Ids,
    add_row,
    check_columns,
    delete_rows,
    ids_of,
    lock_rows,
    switch_rows,
)
from ...status.masking import MASK
from .models import Alert, AlertRule
from .watches import watched

TUNABLE = (
    *("name", "kind", "threshold", "range_minutes", "tenant", "queue", "task"),
    *("webhook_url", "webhook_format", "webhook_secret", "emails", "log"),
    *("notify_resolved", "repeat_minutes", "max_per_hour"),
    *("quiet_from", "quiet_until", "time_zone", "enabled"),
)
"""Columns of a rule that operators change."""


def make_alert_rule(name: str, kind: str, *, using: str | None = None, **columns: Any) -> AlertRule:
    """Create a rule and return it.

    `kind`: the code of a condition. `columns`: any of the others in TUNABLE. Raises InvalidOption
    for an unknown kind or column, and Django's ValidationError, also when the tenant has a rule of
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
    add_row(alias, row, TUNABLE, _secrets(row))


def tune_alert_rule(ids: Ids, *, using: str | None = None, **changes: Any) -> list[int]:
    """Change columns of rules; return the ids of the changed ones. They are checked at once.

    Only the given columns are written. The alerts of a rule that is disabled, or gets another kind,
    are resolved without a message. Raises InvalidOption for an unknown kind or column, Django's
    ValidationError for a wrong value, and AlertRule.DoesNotExist.
    """
    alias = alias_of(using)
    check_columns(changes, TUNABLE)
    if "kind" in changes:
        _check_kind(changes["kind"])
    with transaction.atomic(using=alias):
        rows = lock_rows(alias, AlertRule, ids)
        return [row.pk for row in rows if _write(alias, row, changes)]


def _write(using: str, row: AlertRule, changes: Mapping[str, Any]) -> bool:
    """Write columns of a rule that the open transaction has locked; return whether some changed."""
    changed = [name for name, value in changes.items() if getattr(row, name) != value]
    if not changed:
        return False
    old = _shown(row, changed)
    for name in changed:
        setattr(row, name, changes[name])
    if "tenant" in changed:
        check_home(using, row.tenant)
    row.full_clean(exclude=("id", "created_at", "next_at"))
    row.next_at = timezone.now()
    row.save(using=using, update_fields=[*changed, "next_at"])
    if not row.enabled or "kind" in changed:
        _resolve(using, [row.pk])
    new = _shown(row, changed)
    unseen = {name: f"{new[name]} (new)" for name in changed if old[name] == new[name]}
    record_edits(using, [row], [Edit(old, new | unseen)])
    return True


def _shown(row: AlertRule, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names} | _secrets(row, names)


def _secrets(row: AlertRule, names: Iterable[str] = TUNABLE) -> dict[str, str]:
    """Return what the audit log shows of columns with secrets."""
    shown = {"webhook_url": row.shown_url, "webhook_secret": row.webhook_secret and MASK}
    return {name: shown[name] for name in names if name in shown}


def _resolve(using: str, rules: Iterable[int]) -> None:
    alerts = Alert.objects.using(using).filter(rule__in=list(rules))
    alerts.filter(pending=True).update(pending=False)
    alerts.open().update(resolved_at=timezone.now())


def enable_alert_rules(ids: Ids, *, using: str | None = None) -> list[int]:
    """Enable rules; return the ids of those that were disabled."""
    return _switch(ids, using, enabled=True)


def disable_alert_rules(ids: Ids, *, using: str | None = None) -> list[int]:
    """Disable rules; return the ids of those that were enabled.

    Their open alerts are resolved without a message.
    """
    return _switch(ids, using, enabled=False)


def _switch(ids: Ids, using: str | None, *, enabled: bool) -> list[int]:
    alias = alias_of(using)
    with transaction.atomic(using=alias):
        chosen = AlertRule.objects.filter(pk__in=ids_of(ids, AlertRule))
        keys = [row.pk for row in switch_rows(alias, chosen, {"enabled": enabled})]
        AlertRule.objects.using(alias).filter(pk__in=keys).update(next_at=timezone.now())
        if not enabled:
            _resolve(alias, keys)
    return keys


def mute_alert_rules(
    ids: Ids, *, until: datetime, reason: str, using: str | None = None
) -> list[int]:
    """Send no message of rules until a time; return their ids. Alerts are still recorded.

    Raises InvalidOption for a time that is past or too late, and without a reason.
    """
    until, reason = read_end(until), read_reason(reason)
    chosen = AlertRule.objects.filter(pk__in=ids_of(ids, AlertRule))
    muted = {"muted_until": until, "mute_reason": reason, "muted_by": current_actor().name}
    return _mute(chosen, using, muted)


def unmute_alert_rules(ids: Ids, *, using: str | None = None) -> list[int]:
    """Send messages of rules again; return the ids of those that were muted."""
    chosen = AlertRule.objects.filter(pk__in=ids_of(ids, AlertRule), muted_until__gt=Now())
    return _mute(chosen, using, {"muted_until": None, "mute_reason": "", "muted_by": ""})


def _mute(rows: QuerySet[AlertRule], using: str | None, columns: Mapping[str, Any]) -> list[int]:
    alias = alias_of(using)
    with transaction.atomic(using=alias):
        keys = [row.pk for row in switch_rows(alias, rows, columns)]
        AlertRule.objects.using(alias).filter(pk__in=keys).update(next_at=timezone.now())
    return keys


def delete_alert_rules(ids: Ids, *, using: str | None = None) -> list[int]:
    """Delete rules with their alerts; return the ids of the deleted ones.

    Jobs that still deliver a message of such a rule fail.
    """
    chosen = AlertRule.objects.filter(pk__in=ids_of(ids, AlertRule))
    return [row.pk for row in delete_rows(alias_of(using), chosen, ["kind"])]
