"""The status of one job, or of many, as JSON, for clients that poll it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from ..link_tokens import USER, Holder
from ..status.callback_progress import show_details
from ..status.job_status import adescribe_job as adescribe_job
from ..status.job_status import describe_job as describe_job
from ..status.open_links import open_links

MOST_TOKENS = 100
"""Jobs that one request may ask for: they stand in its address."""

UNKNOWN = "no such job, or the link has expired"
UNREAD = "the database of the job cannot be read now"


def holder_of(request: HttpRequest) -> Holder:
    """Return what identifies the requester: it is called for bound links only."""

    def who(bound: str) -> str | None:
        if bound == USER:
            user = getattr(request, "user", None)
            # a backend may keep inactive users logged in; a model of users need not have them
            if user is None or not user.is_authenticated or not getattr(user, "is_active", True):
                return None
            return str(user.pk)
        session = getattr(request, "session", None)
        if session is None or not session.session_key:
            return None
        session.get("")  # reads it: one that has ended loses its key
        key: str | None = session.session_key
        return key

    return who


@never_cache
@require_safe
def job_status(request: HttpRequest, token: str) -> JsonResponse:
    """Answer with the status of the job that a signed token names."""
    jobs, unread = open_links([token], holder_of(request))
    if unread:
        return JsonResponse({"error": UNREAD}, status=503, headers={"Retry-After": "1"})
    job = jobs.get(token)
    if job is None:
        return JsonResponse({"error": UNKNOWN}, status=404)
    show_details([job])
    response = JsonResponse(describe_job(job))
    if not job.final:
        response["Retry-After"] = "1"
    return response


@csrf_exempt  # it reads, and a token is needed for each job
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def job_statuses(request: HttpRequest) -> JsonResponse:
    """Answer with the statuses of the jobs that signed tokens name, in their order.

    Each `token` is verified by itself. 400: there is none, or there are more than MOST_TOKENS.
    """
    given = request.POST if request.method == "POST" else request.GET
    tokens = list(dict.fromkeys(given.getlist("token")))
    if not 1 <= len(tokens) <= MOST_TOKENS:
        text = f"give 1 to {MOST_TOKENS} parameters named token, not {len(tokens)}"
        return JsonResponse({"error": text}, status=400)
    jobs, unread = open_links(tokens, holder_of(request))
    show_details(jobs.values())
    entries: list[dict[str, Any]] = []
    for token in tokens:
        job = jobs.get(token)
        if token in unread:
            entries.append({"token": token, "job": None, "error": UNREAD, "retry": True})
        elif job is None:
            entries.append({"token": token, "job": None, "error": UNKNOWN})
        else:
            entries.append({"token": token, "job": describe_job(job), "error": None})
    response = JsonResponse({"jobs": entries})
    if unread or not all(job.final for job in jobs.values()):
        response["Retry-After"] = "1"
    return response
