"""Whether the clock of a machine agrees with that of the database server."""

from __future__ import annotations


def clock_text(ahead: float) -> str:
    """Return what a worker says of a clock that is wrong; `ahead`: seconds, below 0 if behind."""
    side = "ahead of" if ahead > 0 else "behind"
    return (
        f"the clock of this machine is {abs(ahead):.1f} s {side} that of the database server: "
        "times of jobs and of the log are off by this, and so is expires_at. Synchronize both "
        "with NTP"
    )
