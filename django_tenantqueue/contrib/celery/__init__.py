"""Celery as an executor: `TENANTQUEUE["EXECUTORS"]`. Needs the extra `celery`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adopted import adopt
    from .executor import CeleryExecutor

_HOMES = {"CeleryExecutor": "executor", "adopt": "adopted"}

__all__ = ["CeleryExecutor", "adopt"]


def __getattr__(name: str) -> Any:
    """Import Celery at the first use: feature.py is imported where there is none, too."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
