"""The memory of a process."""

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")
_HAS_PROC = os.path.exists("/proc/self/statm")


def rss_bytes(pid: int) -> int | None:
    """Return the resident memory of a process; None when it is gone.

    From /proc if it exists, else by `ps`, which takes some milliseconds.
    """
    if not _HAS_PROC:
        output = os.popen(f"ps -o rss= -p {int(pid)}").read()  # noqa: S605 - only a number
        return int(output) * 1024 if output.strip() else None
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return None
