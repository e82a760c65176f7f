"""Statements about API tokens."""

from __future__ import annotations

from .base import execute


def touch_token(using: str, token_id: int, every_seconds: float) -> None:
    """Note the use of a token, unless that was done within `every_seconds`. Waits for no lock."""
    execute(using, "touch_token", {"id": token_id, "every_seconds": every_seconds})
