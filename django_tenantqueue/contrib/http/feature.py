"""What HTTP adds to the core."""

from __future__ import annotations

from ...features import Feature
from .settings import HttpSettings


class Http(Feature):
    """See features.py for when each method is called."""

    settings = HttpSettings

    def ready(self) -> None:
        from ... import http  # noqa: F401 - workers must know its task
