"""What alerts adds to the core."""

from __future__ import annotations

from collections.abc import Iterable

from ...conf import settings_of
from ...features import Feature
from .settings import AlertSettings


class Alerts(Feature):
    """See features.py for when each method is called."""

    settings = AlertSettings

    def ready(self) -> None:
        from ...alerts import delivery  # noqa: F401 - workers must know its task

    def queue_names(self) -> Iterable[str]:
        return [settings_of(AlertSettings).alert_queue]
