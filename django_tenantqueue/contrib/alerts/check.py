"""Checks alert rules: the part of the leader's maintenance.

A check opens and resolves alerts and enqueues their message in one transaction. So each alert is
sent once, also when the leader dies.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from itertools import islice

from django.db import connections, transaction
from django.db.models import Min
from django.utils import timezone

from ...batch_sizes import BATCH, SMALL_BATCH, STAMP_SECONDS
from ...conf import get_settings, settings_of
from ...status.display_limits import LISTED, MESSAGE
from ...text import clean_text
from .delivery import enqueue_message
from .fleet import Fleet
from .messages import make_message
from .models import Alert, AlertRule
from .settings import AlertSettings
from .watches import find

logger = logging.getLogger("django_tenantqueue")

CHECK_RULES = SMALL_BATCH // 5
"""Rules of one step."""
MOST_OPEN = 100
"""Open alerts of one rule. Further objects open theirs when others are resolved."""
SHARE = 0.02
"""Share of its time that a leader spends on one rule at most."""
SEEN_EVERY = timedelta(seconds=STAMP_SECONDS)
"""How often `seen_at` and the text of an open alert are written."""
HOUR = timedelta(hours=1)


def seconds_to_next_check(using: str) -> float | None:
    """Return the seconds until a rule is due; None: there is none."""
    rules = AlertRule.objects.using(using).filter(enabled=True)
    next_at = rules.aggregate(first=Min("next_at"))["first"]
    return None if next_at is None else float((next_at - timezone.now()).total_seconds())


def check_rules(using: str, now: datetime | None = None) -> int:
    """Check up to CHECK_RULES due rules; return how many there were.

    Locks the rules, and skips those that another session has locked. Rules that are due soon are
    checked, too, to share the reads. A failed check is stored in its rule and does not stop the
    others. `now`: this process's clock if None.
    """
    moment = now or timezone.now()
    soon = moment + timedelta(seconds=settings_of(AlertSettings).interval / 2)
    with transaction.atomic(using=using):
        due = AlertRule.objects.using(using).filter(enabled=True, next_at__lte=soon)
        rules = list(
            due.order_by("next_at").select_for_update(no_key=True, skip_locked=True)[:CHECK_RULES]
        )
        fleet = Fleet(using, moment)
        for rule in rules:
            _check_alone(fleet, rule)
        written = ("next_at", "checked_at", "last_error", "hour_at", "hour_sent", "left_out")
        AlertRule.objects.using(using).bulk_update(rules, written)
    return len(rules)


def _check_alone(fleet: Fleet, rule: AlertRule) -> None:
    began = time.monotonic()
    error = ""
    try:
        with transaction.atomic(using=fleet.using):
            _check(fleet, rule)
    except Exception as failure:
        raw = connections[fleet.using].connection
        if raw is None or raw.closed:
            raise
        rule.refresh_from_db(fields=["hour_at", "hour_sent", "left_out"])
        error = clean_text(f"{type(failure).__name__}: {failure}", MESSAGE)
        logger.warning("checking alert rule %s (%s) failed, will retry: %s", rule.pk, rule, error)
    interval = settings_of(AlertSettings).interval
    pause = max(interval, (time.monotonic() - began) / SHARE)
    rule.last_error = error
    rule.checked_at = fleet.now
    rule.next_at = fleet.now + timedelta(seconds=pause)


def _check(fleet: Fleet, rule: AlertRule) -> None:
    """Open, keep and resolve the alerts of a rule, and enqueue the message about them."""
    now, alerts = fleet.now, Alert.objects.using(fleet.using)
    stored = {alert.key: alert for alert in alerts.open().filter(rule=rule)}
    first = islice(find(fleet, rule, stored), MOST_OPEN)
    found = {sighting.key: sighting for sighting in first}
    muted = rule.is_muted(now)
    quiet = muted or rule.is_quiet(now)
    changed = []
    for key, alert in stored.items():
        if key not in found:
            _resolve(rule, alert, now, quiet=quiet, muted=muted)
            changed.append(alert)
            continue
        repeat = _is_repeated(rule, alert, now)
        if repeat or now - alert.seen_at >= SEEN_EVERY:
            alert.seen_at, alert.text = now, found[key].text
            alert.pending = alert.pending or repeat
            changed.append(alert)
    if changed:
        alerts.bulk_update(changed, ("resolved_at", "seen_at", "text", "pending"))
    alerts.bulk_create(
        Alert(
            rule=rule,
            tenant=rule.tenant if s.tenant is None else s.tenant,
            key=key,
            label=s.label,
            text=s.text,
            opened_at=now,
            seen_at=now,
        )
        for key, s in found.items()
        if key not in stored
    )
    if not quiet:
        _notify(fleet, rule)


def _resolve(rule: AlertRule, alert: Alert, now: datetime, *, quiet: bool, muted: bool) -> None:
    """Resolve an alert. If not sent yet, it is sent after the quiet hours, else left out.

    One that no recipient knows is never sent when the rule is muted.
    """
    alert.resolved_at = now
    if alert.notified_at is not None:
        alert.pending = rule.notify_resolved
    elif muted:
        alert.pending = False
    elif not quiet:  # the limit of messages is reached
        alert.pending = False
        rule.left_out += 1


def _is_repeated(rule: AlertRule, alert: Alert, now: datetime) -> bool:
    if rule.repeat_minutes is None or alert.notified_at is None:
        return False
    return now - alert.notified_at >= timedelta(minutes=rule.repeat_minutes)


def _notify(fleet: Fleet, rule: AlertRule) -> None:
    """Enqueue one message about all pending alerts, unless the limit of the hour is reached."""
    now = fleet.now
    if rule.hour_at is None or now - rule.hour_at >= HOUR:
        rule.hour_at, rule.hour_sent = now, 0
    if rule.hour_sent >= rule.max_per_hour:
        return
    pending = Alert.objects.using(fleet.using).filter(rule=rule, pending=True)
    sent = list(pending.order_by("id")[:LISTED])
    if not sent and not rule.left_out:
        return
    more = pending.count() - len(sent)
    message = make_message(rule, sent, now=now, more=more, left_out=rule.left_out)
    enqueue_message(fleet.using, rule, message)
    pending.update(pending=False, notified_at=now)
    rule.hour_sent += 1
    rule.left_out = 0


def prune_alerts(using: str, now: datetime | None = None) -> int:
    """Delete alerts that were resolved CHANGES_KEEP_DAYS days ago; return how many."""
    keep = get_settings().changes_keep_days
    if keep is None:
        return 0
    alerts = Alert.objects.using(using)
    before = (now or timezone.now()) - timedelta(days=keep)
    old = alerts.filter(resolved_at__lt=before).order_by("resolved_at").values("pk")[:BATCH]
    count, _ = alerts.filter(pk__in=old).delete()
    return count
