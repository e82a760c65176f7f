"""What HTTP adds to the core."""

from __future__ import annotations

from ...features import Feature


class Http(Feature):
    """See features.py for when each method is called."""
