"""Which operator has set a column, as far as the log of the admin tells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.db.models import Model
from django.utils.translation import gettext

from .answer import Operator

LOG_READ = 2000
"""Newest entries of the admin's log that are searched. Twice as many find changes that are older,
and take twice as long: the log has no index by row."""


def who_set(row: Model, column: str, value: Any) -> Operator | None:
    """Return who set a column to the value that it has now; None: the log does not tell.

    Code and commands write no log. A later entry that set another value means that code has
    changed it since.
    """
    label = f"{row._meta.get_field(column).verbose_name} "  # type: ignore[union-attr]
    text = (gettext("yes") if value else gettext("no")) if isinstance(value, bool) else str(value)
    for message, operator in _entries(row):
        for change in _changes(message):
            if change.startswith(label):
                return operator if change.endswith(f"→ {text}") else None
    return None


def who_did(row: Model, message: str) -> Operator | None:
    """Return who did what the log keeps as `message`; None: the log does not tell."""
    return next((operator for text, operator in _entries(row) if text == message), None)


def _entries(row: Model) -> list[tuple[str, Operator]]:
    """Return the changes of a row, the newest first."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.models import CHANGE, LogEntry

    newest = LogEntry.objects.order_by("-pk").values("pk")[:LOG_READ]
    entries = LogEntry.objects.filter(
        pk__in=newest,
        object_id=str(row.pk),
        content_type__app_label=row._meta.app_label,
        content_type__model=row._meta.model_name,
        action_flag=CHANGE,
    )
    return [
        (entry.change_message, Operator(entry.user.get_username(), entry.action_time))
        for entry in entries.select_related("user").order_by("-pk")[:50]
    ]


def _changes(message: str) -> Sequence[str]:
    try:
        parts = json.loads(message)
        return [str(field) for part in parts for field in part["changed"]["fields"]]
    except (ValueError, TypeError, KeyError):
        return []
