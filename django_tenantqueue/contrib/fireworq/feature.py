"""What fireworq adds to the core."""

from __future__ import annotations

from ...features import Feature
from .settings import FireworqSettings


class Fireworq(Feature):
    """See features.py for when each method is called."""

    settings = FireworqSettings
