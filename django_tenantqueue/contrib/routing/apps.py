"""The Django application."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from ...features import FeatureApp


class RoutingConfig(FeatureApp):
    """Routings, which choose the queue of a new job."""

    name = "django_tenantqueue.contrib.routing"
    label = "tenantqueue_routing"
    verbose_name = _("Tenant queue: routing")
    tenantqueue_features = ("django_tenantqueue.contrib.routing.feature.Routing",)
