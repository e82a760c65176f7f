"""The Django application."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from ...features import FeatureApp


class SchedulesConfig(FeatureApp):
    """Schedules: jobs that are enqueued at their times."""

    name = "django_tenantqueue.contrib.schedules"
    label = "tenantqueue_schedules"
    verbose_name = _("Tenant queue: schedules")
    tenantqueue_features = ("django_tenantqueue.contrib.schedules.feature.Schedules",)
