"""What API adds to the core."""

from __future__ import annotations

from ...features import Feature
from .settings import ApiSettings


class Api(Feature):
    """See features.py for when each method is called."""

    settings = ApiSettings
