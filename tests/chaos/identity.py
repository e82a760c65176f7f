"""What names a process for good: its id and the tick of its birth, since ids are used again."""

from functools import cache
from pathlib import Path

BIRTH = 19
"""Place of the start time in /proc/PID/stat, counted behind the program's name."""


def identity(pid: int) -> str:
    """Return the identity of a process; raise OSError when there is none of that id."""
    # the name stands in parentheses and may hold any character
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return f"{pid}:{fields[BIRTH]}"


own_identity = cache(identity)
"""The same, asked once for each id: for a process that asks about itself."""
