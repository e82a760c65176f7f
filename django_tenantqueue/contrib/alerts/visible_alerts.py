"""The alerts that a user may see, and the line about open ones on the dashboard."""

from __future__ import annotations

from django.db.models import Case, F, QuerySet, Value, When
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from ...admin.formats import counted
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
    """Return the dashboard's line about open alerts; none for users who may not view alerts."""
    if not may(request, "view", Alert):
        return []
    rows = visible_alerts(request, Alert.objects.using(get_settings().database).open())
    shown = rows.select_related("rule")
    names = [rule_of(alert) for alert in shown.order_by("rule_id", "key")[:PAGE]]
    if not names:
        return []
    rules = listed_text(list(dict.fromkeys(names)))
    text = gettext("Open alerts: %(count)s, of the rules %(rules)s")
    url = reverse("admin:tenantqueue_alerts_alert_changelist")
    values = {"count": counted(len(names), PAGE), "rules": rules}
    return [{"text": text % values, "url": f"{url}?open=yes"}]
