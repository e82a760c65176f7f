"""The Django application."""

from __future__ import annotations

import logging
from contextlib import suppress

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import Tags, register
from django.utils.module_loading import autodiscover_modules, import_string
from django.utils.translation import gettext_lazy as _

from .conf import get_settings
from .exceptions import InvalidOption
from .features import Feature, hooks


def _executor_paths() -> list[str]:
    with suppress(InvalidOption):  # the check E001 says so
        return [entry.backend for entry in get_settings().executors.values()]
    return []


class TenantQueueConfig(AppConfig):
    """Registers the system checks and imports every installed app's `tasks` module.

    Tracebacks that the logger `django_tenantqueue` records have the worker's own frames folded.
    """

    name = "django_tenantqueue"
    label = "tenantqueue"
    verbose_name = _("Tenant queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import bulk, checks  # noqa: F401 - workers must know the tasks of bulk
        from .execution.job_log import fold_frames
        from .status.conditions.system_checks import check_conditions

        logging.getLogger("django_tenantqueue").addFilter(fold_frames)
        register(checks.check_settings, "tenantqueue")
        register(checks.check_coroutines, "tenantqueue")
        register(checks.check_routers, "tenantqueue")
        register(check_conditions, "tenantqueue")
        register(checks.check_references, Tags.models)
        register(checks.check_database, Tags.database)
        autodiscover_modules("tasks")
        for ready in hooks(Feature.ready):
            ready()
        for path in _executor_paths():
            with suppress(ImportError):  # the check E011 names what is missing
                import_string(path)  # it may know the tasks of another system
        for backend in getattr(settings, "TASKS", {}).values():
            path = backend.get("BACKEND", "")
            if not path.startswith("django."):
                with suppress(ImportError):  # Django names the backend that is missing
                    import_string(path)  # ours then finds the tasks of its jobs
