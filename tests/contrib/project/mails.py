"""The project's tasks. No worker has imported this module at its start."""

from __future__ import annotations

import asyncio
from typing import Any

from django import VERSION

if VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task


@task
def send(address: str, *, subject: str = "") -> str:
    """Return what would be sent."""
    return f"{address}: {subject}"


@task(priority=5, queue_name="mail")
async def fetch(number: int) -> dict[str, Any]:
    """Return something from a coroutine."""
    await asyncio.sleep(0)
    return {"number": number, "list": (1, 2)}


@task(takes_context=True)
def attempt(context: Any) -> list[Any]:
    """Return what the context says."""
    return [context.attempt, context.task_result.status, context.task_result.task.name]


@task
async def linger(seconds: float) -> None:
    """Wait."""
    await asyncio.sleep(seconds)


@task
def bounce(address: str) -> None:
    """Fail."""
    raise ConnectionRefusedError(address)
