"""The Django application."""

from __future__ import annotations

from ...features import FeatureApp


class HttpConfig(FeatureApp):
    """Jobs that POST JSON, and POST requests at the end of jobs."""

    name = "django_tenantqueue.contrib.http"
    label = "tenantqueue_http"
    verbose_name = "Tenant queue: HTTP jobs"
    tenantqueue_features = ("django_tenantqueue.contrib.http.feature.Http",)
