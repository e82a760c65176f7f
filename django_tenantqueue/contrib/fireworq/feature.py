"""Connects the Fireworq API to the core."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Model

from ...features import Feature
from .models import FireworqQueue
from .settings import FireworqSettings


class Fireworq(Feature):
    """See features.py for when each method is called."""

    settings = FireworqSettings

    def tenant_tables(self) -> Mapping[type[Model], str]:
        return {FireworqQueue: "queue_id__in"}
