"""The Django application."""

from __future__ import annotations

from ...features import FeatureApp


class FireworqConfig(FeatureApp):
    """The API of Fireworq."""

    name = "django_tenantqueue.contrib.fireworq"
    label = "tenantqueue_fireworq"
    verbose_name = "Tenant queue: Fireworq"
    needs = (
        "django_tenantqueue.contrib.api",
        "django_tenantqueue.contrib.http",
        "django_tenantqueue.contrib.routing",
    )
    tenantqueue_features = ("django_tenantqueue.contrib.fireworq.feature.Fireworq",)
