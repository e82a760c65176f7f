"""Event loops in threads, for tests of what runs in the loop of a worker process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

END_SECONDS = 10.0


@contextmanager
def loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread, which goes on when a coroutine breaks it; end its tasks last.

    A task left behind would be closed by the garbage collector, and asgiref's code in it then sets
    context variables. Before Python 3.12 that may happen while another is being set: its value is
    lost, or the interpreter crashes (https://github.com/python/cpython/issues/148891).
    """
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            try:
                loop.run_forever()
            except BaseException:  # noqa: BLE001 - as a worker process does
                continue

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(_end_tasks(), loop).result(END_SECONDS)
        ended.set()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(END_SECONDS)
        loop.close()


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
