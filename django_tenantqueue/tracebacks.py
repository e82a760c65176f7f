"""Tracebacks as people read them: the frames of the task open, those of the worker folded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from django.utils.translation import ngettext

PACKAGE = Path(__file__).parent
HEAD = "Traceback (most recent call last):"
FRAME = re.compile(r'  File "(?P<file>.+)", line \d+, in .+')
EXECUTORS = (
    "/asgiref/sync.py",
    "/asyncio/base_events.py",
    "/asyncio/runners.py",
    "/asyncio/tasks.py",
    "/asyncio/threads.py",
    "/concurrent/futures/thread.py",
    "/contextlib.py",
    "/threading.py",
)
"""Ends of the files through which a worker calls a task. Their frames are folded beside its own."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of a traceback. `frames`: how many frames of the worker they are; 0: shown."""

    text: str
    frames: int = 0

    @property
    def label(self) -> str:
        """The label of folded frames."""
        return (
            ngettext("%d frame of the worker", "%d frames of the worker", self.frames) % self.frames
        )


@dataclass(slots=True)
class _Block:
    """A frame with its lines, or a line that is none. `file`: "" for such a line."""

    file: str
    lines: list[str]
    is_folded: bool = False


def folded(text: str) -> list[Part]:
    """Return a traceback in parts that make up the same text; what is none is one part."""
    blocks = list(_blocks(text))
    for is_frame, group in groupby(blocks, key=lambda block: bool(block.file)):
        if is_frame:
            _fold(list(group))
    return [
        Part("\n".join(line for block in some for line in block.lines), len(some) if hides else 0)
        for hides, some in ((hides, list(g)) for hides, g in groupby(blocks, lambda b: b.is_folded))
    ]


def folded_text(text: str) -> str:
    """Return a traceback for a log: one line in place of each run of frames of the worker."""
    return "\n".join(
        f"  … {part.frames} {'frame' if part.frames == 1 else 'frames'} of the worker …"
        if part.frames
        else part.text
        for part in folded(text)
    )


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the frames of stacks, and all other lines one by one."""
    block: _Block | None = None
    in_stack = False
    for line in text.split("\n"):
        found = FRAME.fullmatch(line) if in_stack else None
        if found is not None:
            if block is not None:
                yield block
            block = _Block(found["file"], [line])
        elif block is not None and (line.startswith(("    ", "  [Previous line repeated "))):
            block.lines.append(line)
        else:
            if block is not None:
                yield block
            block = None
            in_stack = line == HEAD
            yield _Block("", [line])
    if block is not None:
        yield block


def _fold(frames: list[_Block]) -> None:
    """Fold the runs of frames of the worker and its executors that have a frame of the worker."""
    for is_ours, run in groupby(
        frames, key=lambda frame: _is_ours(frame.file) or _runs(frame.file)
    ):
        of_run = list(run)
        if is_ours and any(_is_ours(frame.file) for frame in of_run):
            for frame in of_run:
                frame.is_folded = True


def _is_ours(file: str) -> bool:
    _, found, rest = file.replace("\\", "/").rpartition(f"/{PACKAGE.name}/")
    return bool(found) and rest in _modules()


def _runs(file: str) -> bool:
    return file.replace("\\", "/").endswith(EXECUTORS)


@cache
def _modules() -> frozenset[str]:
    return frozenset(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
