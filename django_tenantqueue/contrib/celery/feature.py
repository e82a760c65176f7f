"""Connects Celery to the core."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...features import Feature

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand

    from .adopted_tasks import AdoptedTask


class Celery(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        if "celery" in sys.modules:  # the project uses it
            from . import adopted_tasks, executor  # noqa: F401 - they register tasks

    def adopt(self, target: object, options: Mapping[str, Any]) -> AdoptedTask | None:
        if not _is_of_celery(target):
            return None
        from .adopted_tasks import adopt

        return adopt(target, **options)

    def commands(self) -> Mapping[str, type[BaseCommand]]:
        from .management.subcommands.celery_report import CeleryReport

        return {"celery-report": CeleryReport}


def _is_of_celery(target: object) -> bool:
    """Whether an object is a task of Celery, or a proxy of one."""
    return any(one.__module__.partition(".")[0] == "celery" for one in type(target).__mro__)
