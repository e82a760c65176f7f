"""The Django application."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from ...features import FeatureApp


class ShardsConfig(FeatureApp):
    """Shards, which spread tenants over several databases."""

    name = "django_tenantqueue.contrib.shards"
    label = "tenantqueue_shards"
    verbose_name = _("Tenant queue: shards")
    tenantqueue_features = ("django_tenantqueue.contrib.shards.feature.Shards",)
