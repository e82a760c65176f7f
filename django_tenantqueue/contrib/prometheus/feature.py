"""What prometheus adds to the core."""

from __future__ import annotations

from ...features import Feature
from .settings import PrometheusSettings


class Prometheus(Feature):
    """See features.py for when each method is called."""

    settings = PrometheusSettings
