"""Waiting for a job: one answer when it ends (long poll), or a stream of its progress.

Both are coroutines. Under ASGI they occupy no thread between two looks at the row. Under WSGI each
of them keeps a thread of the server.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router

from ...conf import get_settings
from ...exceptions import RequestRefused
from ...models import Job
from ...models.job import pauses
from ...status.callback_progress import show_details
from ..tokens import token_of
from . import schemas, shown
from .access import READ, AsyncNeeds, Caller, caller_of, no_token
from .documents import operation
from .jobs import JobId, answer, find_job, job_details

router = Router(tags=["jobs"])

MOST_WAIT = 60.0
"""Seconds that one request may wait. Halved: twice as many requests of a client that waits for
long. Doubled: proxies end more of them."""
SILENT_SECONDS = 15.0
"""After this time without news a stream sends a comment, so that no proxy closes it. Halved: twice
as many comments. Doubled: some proxies close it."""
STREAM_SECONDS = SILENT_SECONDS * 20
"""After this time a stream ends, and its client asks for another one. Twice as long: an idle
connection is held twice as long by a client that has gone unnoticed."""


def _look(request: HttpRequest, caller: Caller, job_id: int) -> Job:
    """Return the job as it is now. Raises RequestRefused, also when the token has ended."""
    if token_of(request) is None:  # revoked or expired meanwhile
        raise no_token()
    return find_job(job_id, caller, light=True)


@operation(router.get, "/jobs/{job_id}/wait", AsyncNeeds(READ), {200: schemas.JobDetails})
async def wait_for_job(
    request: HttpRequest,
    job_id: JobId,
    seconds: Annotated[float, Query(ge=0, le=MOST_WAIT, allow_inf_nan=False)] = 30.0,
) -> HttpResponse:
    """Wait for the end of a job.

    The answer comes when it has ended, or after `seconds` with `final: false`: ask again then.
    """
    caller = caller_of(request)
    look = sync_to_async(_look)
    job = await look(request, caller, job_id)
    for pause in pauses(seconds):
        if job.is_final:
            break
        await asyncio.sleep(pause)
        job = await look(request, caller, job_id)
    return await sync_to_async(lambda: answer(job_details(job_id, caller)))()


def _event(name: str, job: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(job, cls=DjangoJSONEncoder)}\n\n"


@dataclass(slots=True)
class _Stream:
    """The events of a job. look() is the text to send now."""

    request: HttpRequest
    caller: Caller
    job_id: int
    is_over: bool = False
    _last: str = ""
    _sent_at: float = field(default_factory=time.monotonic)

    def look(self) -> str:
        """Return the next events; "" when there is no news."""
        try:
            job = _look(self.request, self.caller, self.job_id)
        except RequestRefused:
            self.is_over = True
            return ""
        if job.is_final:
            self.is_over = True
            return _event("end", job_details(self.job_id, self.caller))
        return self._news(job)

    def _news(self, job: Job) -> str:
        show_details(get_settings().database, [job])
        text = _event("progress", shown.job_summary(job))
        now = time.monotonic()
        if text != self._last:
            self._last, self._sent_at = text, now
            return text
        if now - self._sent_at < SILENT_SECONDS:
            return ""
        self._sent_at = now
        return ": nothing new\n\n"

    def texts(self) -> Iterator[str]:
        """Yield events; the thread sleeps between two looks."""
        yield self.look()
        for pause in pauses(STREAM_SECONDS):
            if self.is_over:
                return
            time.sleep(pause)
            if text := self.look():
                yield text

    async def atexts(self) -> AsyncIterator[str]:
        """See texts()."""
        look = sync_to_async(self.look)
        yield await look()
        for pause in pauses(STREAM_SECONDS):
            if self.is_over:
                return
            await asyncio.sleep(pause)
            if text := await look():
                yield text


@operation(router.get, "/jobs/{job_id}/events", AsyncNeeds(READ), {200: str})
async def follow_job(request: HttpRequest, job_id: JobId) -> StreamingHttpResponse:
    """Follow a job with server-sent events.

    `progress`: what has changed, as in lists. `end`: the job as it has ended, and the last event.
    The stream ends after five minutes. Ask again then.
    """
    caller = caller_of(request)
    await sync_to_async(find_job)(job_id, caller, light=True)
    stream = _Stream(request, caller, job_id)
    texts = stream.atexts() if isinstance(request, ASGIRequest) else stream.texts()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(texts, content_type="text/event-stream", headers=headers)
