"""Compares what the bodies wrote with what was enqueued."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.intervals import most_at_once


@dataclass
class Line:
    """What the bodies of a line of jobs wrote."""

    begins: list[tuple[float, int]] = field(default_factory=list)
    ends: dict[int, float] = field(default_factory=dict)


def read(path: Path) -> dict[str, Line]:
    found: defaultdict[str, Line] = defaultdict(Line)
    for text in path.read_text().splitlines():
        what, name, number, at, _database = text.split("\t")
        if what == "begin":
            found[name].begins.append((float(at), int(number)))
        else:
            found[name].ends[int(number)] = float(at)
    return dict(found)


def faults(marks: Path, enqueued: Mapping[str, int], slots: Mapping[str, int]) -> list[str]:
    """Return what is wrong. `enqueued`: the number of jobs of each line, `slots`: how many of them
    may run at once. With one slot they have to begin in their order."""
    found = []
    lines = read(marks)
    for name, count in enqueued.items():
        line = lines.get(name, Line())
        order = [number for _, number in sorted(line.begins)]
        lost = set(range(count)) - set(order)
        twice = [number for number, times in Counter(order).items() if times > 1]
        if lost:
            found.append(f"{name}: {len(lost)} of {count} jobs never ran, such as {min(lost)}")
        if twice:
            found.append(f"{name}: {len(twice)} jobs ran twice, such as {min(twice)}")
        if set(order) - line.ends.keys():
            found.append(f"{name}: {len(set(order) - line.ends.keys())} jobs have not ended")
            continue
        if slots[name] == 1 and order != sorted(order):
            late = next(later for first, later in pairwise(order) if later < first)
            found.append(f"{name}: job {late} began after later ones")
        most = most_at_once((at, line.ends[number]) for at, number in line.begins)
        if most > slots[name]:
            found.append(f"{name}: {most} jobs ran at once, and {slots[name]} are allowed")
    return found
