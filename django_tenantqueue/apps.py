"""The Django application."""

from __future__ import annotations

import logging
from contextlib import suppress
from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import Tags, register
from django.utils.module_loading import (
    autodiscover_modules,
    import_string,
    module_has_submodule,
)
from django.utils.translation import gettext_lazy as _

from .conf import get_settings
from .exceptions import InvalidOption
from .features import Feature, hooks


def _executor_paths() -> list[str]:
    """Return the backends of EXECUTORS."""
    with suppress(InvalidOption):  # the check E001 says so
        return [entry.backend for entry in get_settings().executors.values()]
    return []


_PARTS = {
    f"{__package__}.contrib.{part.lower()}": part
    for part in (
        *("Schedules", "Routing", "Retention", "Http", "Alerts", "Prometheus", "Api"),
        *("Fireworq", "Celery"),
    )
}
"""Path of each optional part -> name of its feature."""


def import_parts(name: str) -> None:
    """Import the module `name` of each optional part that has one."""
    for path in _PARTS:
        if module_has_submodule(import_module(path), name):
            import_module(f"{path}.{name}")


class TenantQueueConfig(AppConfig):
    """Registers the system checks and imports every installed app's `tasks` module.

    Tracebacks that the logger `django_tenantqueue` records have the worker's own frames folded.
    """

    name = "django_tenantqueue"
    label = "tenantqueue"
    verbose_name = _("Tenant queue")
    default_auto_field = "django.db.models.BigAutoField"
    tenantqueue_features = tuple(f"{path}.feature.{name}" for path, name in _PARTS.items())

    def import_models(self) -> None:
        super().import_models()
        import_parts("models")

    def ready(self) -> None:
        from . import bulk, checks  # noqa: F401 - workers must know the tasks of bulk
        from .execution.job_log import fold_frames

        logging.getLogger("django_tenantqueue").addFilter(fold_frames)
        register(checks.check_settings, "tenantqueue")
        register(checks.check_coroutines, "tenantqueue")
        register(checks.check_routers, "tenantqueue")
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
