"""Text that PostgreSQL can store. No database."""

from __future__ import annotations


def is_storable(text: str) -> bool:
    """Whether PostgreSQL takes it as text: it has no NUL characters and no lone surrogates."""
    if text.isascii():
        return "\x00" not in text
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text
