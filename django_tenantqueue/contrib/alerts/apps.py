"""The Django application."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from ...features import FeatureApp


class AlertsConfig(FeatureApp):
    """Alert rules, and messages about open alerts."""

    name = "django_tenantqueue.contrib.alerts"
    label = "tenantqueue_alerts"
    verbose_name = _("Tenant queue: alerts")
    needs = ("django_tenantqueue.contrib.http",)
    tenantqueue_features = ("django_tenantqueue.contrib.alerts.feature.Alerts",)
