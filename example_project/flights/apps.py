"""The app's configuration."""

from django.apps import AppConfig


class FlightsConfig(AppConfig):
    """Flights, airlines, and the reports on them."""

    name = "example_project.flights"
    label = "flights"
    verbose_name = "Flights"
    default_auto_field = "django.db.models.BigAutoField"
