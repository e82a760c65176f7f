"""What Celery adds to the core."""

from __future__ import annotations

import sys

from ...features import Feature


class Celery(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        if "celery" in sys.modules:  # the project uses it: workers must know its tasks
            from . import adopted  # noqa: F401
