"""Durations, memory, rates and counts as operators read them."""

from __future__ import annotations

from datetime import timedelta

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

NOTHING = "–"

_UNITS = ((_("%d d"), 86400.0), (_("%d h"), 3600.0), (_("%d min"), 60.0), (_("%d s"), 1.0))


def duration_text(value: timedelta | float | None) -> str:
    """Return a duration with the two units that matter: 12 ms, 1.2 s, 3 min 4 s, 2 d 3 h."""
    if value is None:
        return NOTHING
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds < 0:
        seconds = 0.0  # clocks of two machines
    if seconds < 0.9995:
        return gettext("%s ms") % f"{seconds * 1000:.0f}"
    if seconds < 59.95:
        return gettext("%s s") % f"{seconds:.1f}".removesuffix(".0")
    whole = round(seconds)
    if whole < 3600:
        return gettext("%(min)d min %(s)d s") % {"min": whole // 60, "s": whole % 60}
    if whole < 86400:
        return gettext("%(h)d h %(min)d min") % {"h": whole // 3600, "min": whole % 3600 // 60}
    return gettext("%(d)d d %(h)d h") % {"d": whole // 86400, "h": whole % 86400 // 3600}


def rough_text(seconds: float) -> str:
    """Return a duration in whole units of one kind: 0 s, 59 s, 3 min, 2 d."""
    text, size = next((entry for entry in _UNITS if seconds >= entry[1]), _UNITS[-1])
    return str(text) % max(int(seconds // size), 0)


def memory_text(size: int | None) -> str:
    """Return a number of bytes in MB or GB, of 1024² and 1024³ bytes."""
    if size is None:
        return NOTHING
    megabytes = size / 2**20
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1024:.1f} GB"


def rate_text(rate: float) -> str:
    """Return how often something happens in a second: 0, 0.3, 12, 1,234."""
    return f"{rate:.1f}".removesuffix(".0") if rate < 9.95 else f"{rate:,.0f}"


def counted_text(number: int, most: int) -> str:
    """Return a count that stopped at `most`."""
    return f"{most:,}+" if number >= most else f"{number:,}"
