"""What prometheus adds to the core."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Model

from ...features import Feature
from ...models import FigureTotal


class Prometheus(Feature):
    """See features.py for when each method is called."""

    def fleet_tables(self) -> Sequence[type[Model]]:
        """Return the table of totals."""
        return (FigureTotal,)
