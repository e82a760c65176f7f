"""The Django application."""

from __future__ import annotations

from ...features import FeatureApp


class PrometheusConfig(FeatureApp):
    """Metrics for Prometheus."""

    name = "django_tenantqueue.contrib.prometheus"
    label = "tenantqueue_prometheus"
    verbose_name = "Tenant queue: Prometheus"
    tenantqueue_features = ("django_tenantqueue.contrib.prometheus.feature.Prometheus",)
