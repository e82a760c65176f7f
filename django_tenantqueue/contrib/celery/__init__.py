"""Celery as an executor: `TENANTQUEUE["EXECUTORS"]`. Needs the extra `celery`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adopted_tasks import adopt
    from .executor import CeleryExecutor

__all__ = ["CeleryExecutor", "adopt"]


def __getattr__(name: str) -> Any:
    """Import Celery at the first use: feature.py is imported in projects without it, too."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import adopted_tasks, executor

    return adopted_tasks.adopt if name == "adopt" else executor.CeleryExecutor
