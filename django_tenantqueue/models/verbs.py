"""Verbs of control for methods of rows: control imports the models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from ..operations.result import Result


def act(verb: str, row: object, **columns: Any) -> Result:
    """Call a verb of django_tenantqueue.control with one row."""
    result: Result = import_string(f"django_tenantqueue.control.{verb}")(row, **columns)
    return result
