"""What retention adds to the core."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Model

from ...features import Feature
from ...models import Change, RetentionRule


class Retention(Feature):
    """See features.py for when each method is called."""

    def audited(self) -> Mapping[str, type[Model]]:
        """Return the model of retention rules."""
        return {Change.Kind.RETENTION: RetentionRule}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        """Return the table of retention rules."""
        return {RetentionRule: "tenant"}
