"""The Django application."""

from __future__ import annotations

import logging

from django.apps import AppConfig
from django.core.checks import Tags, register
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class TenantQueueConfig(AppConfig):
    """Registers the system checks and imports every installed app's `tasks` module.

    Tracebacks that the logger `django_tenantqueue` records have the worker's own frames folded.
    """

    name = "django_tenantqueue"
    label = "tenantqueue"
    verbose_name = _("Tenant queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import bulk, checks  # noqa: F401 - workers must know the task of bulk actions
        from .alerts import delivery  # noqa: F401 - and the one of alerts
        from .execution.job_log import fold_frames

        logging.getLogger("django_tenantqueue").addFilter(fold_frames)
        register(checks.check_settings, "tenantqueue")
        register(checks.check_schedules, "tenantqueue")
        register(checks.check_references, Tags.models)
        register(checks.check_database, Tags.database)
        autodiscover_modules("tasks")
