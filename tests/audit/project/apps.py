"""The project's app."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "tests.audit.project"
    label = "audit"
    default_auto_field = "django.db.models.BigAutoField"
