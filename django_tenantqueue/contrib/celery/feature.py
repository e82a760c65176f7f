"""What Celery adds to the core."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...features import Feature

if TYPE_CHECKING:
    from .adopted import AdoptedTask

PACKAGE = __name__.rpartition(".")[0]


class Celery(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        """Make the tasks of Celery known where a project has imported it."""
        if "celery" in sys.modules:
            with suppress(ImportError):  # the check E016 names what is missing
                import_module(f"{PACKAGE}.adopted")
                import_module(f"{PACKAGE}.executor")

    def adopt(self, target: object, options: Mapping[str, Any]) -> AdoptedTask | None:
        """Return the task that stands for a task of Celery."""
        if not _is_of_celery(target):
            return None
        from .adopted import adopt

        return adopt(target, **options)


def _is_of_celery(target: object) -> bool:
    """Whether an object is a task of Celery, or stands for one."""
    return any(one.__module__.partition(".")[0] == "celery" for one in type(target).__mro__)
