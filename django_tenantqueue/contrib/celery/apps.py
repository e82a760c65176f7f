"""The Django application."""

from __future__ import annotations

from ...features import FeatureApp


class CeleryConfig(FeatureApp):
    """Tasks of Celery as tasks of this package, and Celery as an executor."""

    name = "django_tenantqueue.contrib.celery"
    label = "tenantqueue_celery"
    verbose_name = "Tenant queue: Celery"
    tenantqueue_features = ("django_tenantqueue.contrib.celery.feature.Celery",)
