"""What Celery adds to the core."""

from __future__ import annotations

import sys

from ...features import Feature


class Celery(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        if "celery" in sys.modules:  # the project uses it
            from . import adopted, executor  # noqa: F401 - our workers, and Celery's, find tasks
