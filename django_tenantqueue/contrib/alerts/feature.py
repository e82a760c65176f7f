"""What alerts adds to the core."""

from __future__ import annotations

from ...features import Feature


class Alerts(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        from ...alerts import delivery  # noqa: F401 - workers must know its task
