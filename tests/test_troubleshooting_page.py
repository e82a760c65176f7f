"""Messages that docs/howto/troubleshooting.md quotes are those of the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import django_tenantqueue

PACKAGE = Path(django_tenantqueue.__file__).parent
PAGE = Path(__file__).parents[1] / "docs/howto/troubleshooting.md"
QUOTED = (
    "no worker runs",
    "ready jobs that no worker takes",
    "ready jobs in paused queues, or in queues without slots",
    "no worker has done the maintenance",
    "slots of its queue are taken, for the longest time by",
    "The workers that claimed it do not have the task",
    "cannot be reached",
    "is not a whole number from",
    "the environment variable",
    "clocks that differ from the database server's",
    "the server allows",
    "workers that died in the last hour",
    "an open transaction prevents vacuum",
    "this worker cannot run job",
    ", so it returns this and other jobs of",
)


def strings() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@cache
def code() -> str:
    return "\n".join(strings())


@pytest.mark.parametrize("text", QUOTED)
def test_quoted_message_is_of_the_code(text: str):
    assert text in " ".join(PAGE.read_text().split())
    assert text in code()
