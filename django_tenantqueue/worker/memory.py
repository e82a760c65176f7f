"""How much memory a process takes."""

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")
_HAS_PROC = os.path.exists("/proc/self/statm")


def rss_bytes(pid: int) -> int | None:
    """Return the resident memory of a process; None when it is gone.

    From /proc where there is one; elsewhere by `ps`, which takes some milliseconds.
    """
    if not _HAS_PROC:
        told = os.popen(f"ps -o rss= -p {int(pid)}").read()  # noqa: S605 - nothing but a number
        return int(told) * 1024 if told.strip() else None
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return None
