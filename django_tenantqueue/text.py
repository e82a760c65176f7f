"""Texts: what PostgreSQL can store, numbers and patterns. No database."""

from __future__ import annotations

from fnmatch import fnmatchcase


def is_storable(text: str) -> bool:
    """Whether PostgreSQL takes it as text: it has no NUL characters and no lone surrogates."""
    if text.isascii():
        return "\x00" not in text
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def number_of(noun: str, number: int) -> str:
    """Return a number with its noun: "1 job", "2,000 jobs"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def read_number(text: str) -> int | None:
    """Return the number that an address or a search names; None when no id is like that.

    The length comes first: Python refuses to read thousands of digits.
    """
    if not text.isdecimal() or len(text) > len(str(2**63)) or int(text) >= 2**63:
        return None
    return int(text)


def matches(name: str, pattern: str) -> bool:
    """Return whether a name fits a pattern: `*` is any text, other signs are themselves."""
    if "*" not in pattern:
        return name == pattern
    return fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]"))


def clean_text(text: str, most: int = 20_000) -> str:
    """Return `text` without what PostgreSQL cannot store, its middle cut out when too long."""
    text = str.replace(text, "\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - most} characters left out …\n{text[-half:]}"
