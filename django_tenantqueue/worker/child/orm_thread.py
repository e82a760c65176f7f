"""The thread in which all coroutines of a worker process use the ORM."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from asgiref.sync import SyncToAsync

from ...execution.connection_state import (
    check_blocks,
    close_ended_connections,
    left_open,
    open_blocks,
    reset_connections,
)
from ...execution.current_job import RunningJob, running_or_none


class OrmThread(ThreadPoolExecutor):
    """Runs what coroutines hand to `sync_to_async` one after another.

    They share its connections. A call that leaves a transaction open fails, and the connection is
    closed. A call of another job than the last one finds the sessions reset.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1, thread_name_prefix="tenantqueue-orm")
        self._user: RunningJob | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule a call for the job of the calling coroutine."""
        return super().submit(self._call, running_or_none(), fn, *args, **kwargs)

    def _call(
        self, user: RunningJob | None, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        if user is not None and user is not self._user:
            if self._user is not None:
                reset_connections(keep=True)
            self._user = user
        close_ended_connections()
        blocks = open_blocks()
        is_done = False
        try:
            value = fn(*args, **kwargs)
            check_blocks(blocks)
            is_done = True
        finally:
            if not is_done and left_open(blocks):
                reset_connections(keep=True)
        return value


def install() -> None:
    """Let `sync_to_async` use such a thread in this process."""
    SyncToAsync.single_thread_executor = OrmThread()
