"""Hooks of a tracer for calls and runs. Without one, each costs a check of `active`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

TRACE = "opentelemetry"
"""The key of `Job.context` under which the trace of an enqueue travels."""


class Tracer(Protocol):
    """The interface of a tracer, such as `contrib.otel`."""

    def send(
        self, tenant: str, queue: str | None, task: str | None = None, *, is_batch: bool = False
    ) -> AbstractContextManager[Callable[..., None]]:
        """Surround an enqueue.

        What it yields is called with what came of it: `job` and `duplicate`, or `count`, and
        `monitor`.
        """

    def process(self, running: Any) -> AbstractContextManager[Callable[[Any], None]]:
        """Surround a run; what it yields is called with the Outcome."""

    def capture(self) -> dict[str, str] | None:
        """Return what a job carries from the current enqueue to its runs."""

    def flush(self) -> None:
        """Send what is buffered: the process ends."""


active: Tracer | None = None


def send_batch(
    tenant: str, queue: str | None, task: str | None = None
) -> AbstractContextManager[Callable[..., None]]:
    """See Tracer.send(); does nothing without a tracer."""
    if active is None:
        return nullcontext(_ignore)
    return active.send(tenant, queue, task, is_batch=True)


def _ignore(**values: Any) -> None:
    """Note nothing."""
