"""Waiting for a job: one answer when it ends (long poll), or a stream of its progress.

A request that waits holds no connection to the database. Under ASGI it occupies no thread; under
WSGI it keeps a thread of the server.
"""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router

from ...conf import database
from . import schemas, shown
from .access import READ, AsyncNeeds, Caller, caller_of, no_token, token_of
from .jobs import JobId, answer, find_job, job_details
from .openapi import operation
from .waits import Wait, close_connections, end_thread, watcher

router = Router(tags=["jobs"])

SILENT_SECONDS = 15.0
"""Interval of comments in a stream without news. They keep proxies from closing it."""
STREAM_SECONDS = SILENT_SECONDS * 20
"""Longest time of a stream. Its client then connects again."""


def _first_look(job_id: int, caller: Caller) -> bool:
    """Return whether a job has ended, and leave no connection open. Raises ApiError."""
    job = find_job(job_id, caller, light=True)
    close_connections()
    return job.final


@operation(router.get, "/jobs/{job_id}/wait", AsyncNeeds(READ), {200: schemas.JobDetails})
async def wait_for_job(
    request: HttpRequest,
    job_id: JobId,
    seconds: Annotated[float, Query(ge=0, le=60.0, allow_inf_nan=False)] = 30.0,
) -> HttpResponse:
    """Wait for the end of a job.

    Answers when the job has ended, or after `seconds` with `final: false`. Then send it again.
    """
    caller = caller_of(request)
    if not await sync_to_async(_first_look)(job_id, caller):
        wait = Wait(request, caller, job_id, each=False)
        watcher.join(wait)
        try:
            end_thread()
            await wait.achange(seconds)
        finally:
            watcher.leave(wait)
    return await sync_to_async(_last_look)(request, caller, job_id)


def _last_look(request: HttpRequest, caller: Caller, job_id: int) -> HttpResponse:
    if token_of(request) is None:  # revoked or expired meanwhile
        raise no_token()
    return answer(job_details(job_id, caller))


def _event(name: str, job: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(job, cls=DjangoJSONEncoder)}\n\n"


class _Stream:
    """The events of a job. close() ends its wait; so does the garbage collector."""

    def __init__(self, request: HttpRequest, caller: Caller, job_id: int) -> None:
        self.wait = Wait(request, caller, job_id, each=True)
        watcher.join(self.wait)
        self.close = weakref.finalize(self, watcher.leave, self.wait)
        self._caller, self._last, self._sent_at = caller, "", time.monotonic()

    def pauses(self) -> Iterator[float]:
        """Yield how long to wait for each read, until the stream ends."""
        end = time.monotonic() + STREAM_SECONDS
        while not self.wait.is_over and (left := end - time.monotonic()) > 0:
            yield min(left, SILENT_SECONDS)

    def news(self) -> str:
        """Return the next event of an unfinished job; "" if nothing has changed."""
        job, now = self.wait.job, time.monotonic()
        if job is None:  # there was no look yet
            return ""
        text = _event("progress", shown.job_summary(job))
        if text != self._last:
            self._last, self._sent_at = text, now
            return text
        if now - self._sent_at < SILENT_SECONDS:
            return ""
        self._sent_at = now
        return ": nothing new\n\n"

    def end(self) -> str:
        """Return the last event; "" if the job was deleted or the token revoked."""
        if self.wait.job is None or self.wait.is_refused:
            return ""
        with database(self.wait.using):  # the view has ended
            return _event("end", job_details(self.wait.job_id, self._caller))


class _Texts(_Stream):
    """For WSGI."""

    def __iter__(self) -> Iterator[str]:
        close_connections()
        for pause in self.pauses():
            self.wait.change(pause)
            if text := self.end() if self.wait.is_over else self.news():
                yield text


class _AsyncTexts(_Stream):
    """For ASGI."""

    async def __aiter__(self) -> AsyncIterator[str]:
        await sync_to_async(close_connections)()  # middleware may have used some after the view
        end_thread()
        for pause in self.pauses():
            await self.wait.achange(pause)
            if text := await sync_to_async(self.end)() if self.wait.is_over else self.news():
                yield text


@operation(router.get, "/jobs/{job_id}/events", AsyncNeeds(READ), {200: str})
async def follow_job(request: HttpRequest, job_id: JobId) -> StreamingHttpResponse:
    """Follow a job with server-sent events.

    `progress`: the job as in lists, when it has changed. `end`: the ended job, as the last event.
    The stream ends after five minutes. Then connect again.
    """
    caller = caller_of(request)
    await sync_to_async(find_job)(job_id, caller, light=True)
    texts = (_AsyncTexts if isinstance(request, ASGIRequest) else _Texts)(request, caller, job_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(texts, content_type="text/event-stream", headers=headers)
