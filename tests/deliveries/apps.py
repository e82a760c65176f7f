"""The Django application."""

from django.apps import AppConfig


class DeliveriesConfig(AppConfig):
    """Parcels that jobs hand over."""

    name = "tests.deliveries"
    label = "tenantqueue_deliveries"
    default_auto_field = "django.db.models.BigAutoField"
    tenantqueue_features = ("tests.deliveries.feature.Deliveries",)
