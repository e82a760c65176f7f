"""The Django application."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from ...features import FeatureApp


class ApiConfig(FeatureApp):
    """HTTP API with tokens."""

    name = "django_tenantqueue.contrib.api"
    label = "tenantqueue_api"
    verbose_name = _("Tenant queue: HTTP API")
    tenantqueue_features = ("django_tenantqueue.contrib.api.feature.Api",)
