"""The alerts that a user may see, and the line about open ones on the dashboard."""

from __future__ import annotations

from django.db.models import Case, F, Q, QuerySet, Value, When
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from ...admin.formats import NOTHING, counted
from ...admin.mutes import mute_text
from ...admin.visible import is_limited, may, only_visible
from ...conf import get_settings
from ...status.conditions import listed_text
from ...status.display_limits import PAGE
from .models import Alert


def visible_alerts(request: HttpRequest, rows: QuerySet[Alert]) -> QuerySet[Alert]:
    """Return the alerts that the user of a request may see, also those of rules of all tenants.

    Users who are limited to some tenants see no alert about every tenant or the fleet.
    """
    if not is_limited(request):
        return rows
    own_rule = When(rule__tenant=F("tenant"), then=Value(False))
    rows = only_visible(request, rows, "tenant")
    return rows.annotate(hides_rule=Case(own_rule, default=Value(True)))


def rule_of(alert: Alert) -> str:
    """Return the name of an alert's rule; its condition if the user may not see all its tenants.

    The alert is one of visible_alerts().
    """
    if getattr(alert, "hides_rule", False):
        return alert.rule.kind_text
    return str(alert.rule)


def open_alerts(request: HttpRequest) -> list[dict[str, str]]:
    """Return the dashboard's lines about open alerts; none for users who may not view alerts.

    One line is about all rules that are not muted. Rules that were muted together have another.
    """
    if not may(request, "view", Alert):
        return []
    rows = visible_alerts(request, Alert.objects.using(get_settings().database).open())
    now = timezone.now()
    found: dict[str, list[str]] = {}
    is_muted = Q(rule__muted_until__gt=now)
    for some in (rows.filter(~is_muted), rows.filter(is_muted)):
        for alert in some.select_related("rule").order_by("rule_id", "key")[:PAGE]:
            muted = muted_text(alert) if alert.rule.is_muted(now) else ""
            found.setdefault(muted, []).append(rule_of(alert))
    text = gettext("Open alerts: %(count)s, of the rules %(rules)s")
    url = f"{reverse('admin:tenantqueue_alerts_alert_changelist')}?open=yes"
    lines = []
    for muted, names in found.items():
        rules = listed_text(list(dict.fromkeys(names)))
        line = {"text": text % {"count": counted(len(names), PAGE), "rules": rules}, "url": url}
        lines.append({**line, "muted": muted} if muted else line)
    return lines


def muted_text(alert: Alert) -> str:
    """Return until when the rule of an alert is muted, by whom and why.

    Users who may not see all tenants of the rule see the time alone.
    """
    rule = alert.rule
    assert rule.muted_until is not None
    if getattr(alert, "hides_rule", False):
        return mute_text(rule.muted_until, "", NOTHING)
    return mute_text(rule.muted_until, rule.muted_by, rule.mute_reason)
