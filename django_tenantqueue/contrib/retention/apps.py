"""The Django application."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from ...features import FeatureApp


class RetentionConfig(FeatureApp):
    """Retention rules: how long to keep ended jobs."""

    name = "django_tenantqueue.contrib.retention"
    label = "tenantqueue_retention"
    verbose_name = _("Tenant queue: retention")
    tenantqueue_features = ("django_tenantqueue.contrib.retention.feature.Retention",)
