"""The status of one job, or of many, as JSON, for clients that poll it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from ..conf import get_settings
from ..models import Job
from ..models.job import read_job_token
from ..states import State
from ..status.callback_progress import show_details
from ..status.masking import mask_of_job

MOST_TOKENS = 100
"""Jobs that one request may ask for."""

UNKNOWN = "no such job, or the link has expired"


def describe_job(job: Job) -> dict[str, Any]:
    """Return what a client may know of a job: no arguments, no traceback, no internals.

    The result of a task with secret=True is None.

    Keys: id, name, state, final, attempt, max_attempts, progress (done, total, percent, message),
    result, result_missing, error, created_at, queued_at, started_at, finished_at.
    """
    result, missing = None, False
    if job.state == State.SUCCESS:
        try:
            result = job.result
            if result is not None and mask_of_job(job).whole:
                result = None  # the task is declared with secret=True
        except LookupError:
            missing = True
    last_error = job.last_error if job.state != State.SUCCESS else None
    return {
        "id": job.pk,
        "name": job.name,
        "state": job.state,
        "final": job.is_final,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "progress": {
            "done": job.progress_done,
            "total": job.progress_total,
            "percent": job.progress_percent,
            "message": job.progress_message,
        },
        "result": result,
        "result_missing": missing,
        "error": None if last_error is None else last_error["message"],
        "created_at": job.created_at,
        "queued_at": job.queued_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
    }


@never_cache
@require_safe
def job_status(request: HttpRequest, token: str) -> JsonResponse:
    """Answer with the status of the job that a signed token names."""
    job_id = read_job_token(token)
    job, using = None, get_settings().database
    if job_id is not None:
        job = Job.objects.using(using).find(job_id)
    if job is None:
        return JsonResponse({"error": UNKNOWN}, status=404)
    show_details(using, [job])
    response = JsonResponse(describe_job(job))
    if not job.is_final:
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
    ids = {token: read_job_token(token) for token in tokens}
    wanted = [job_id for job_id in ids.values() if job_id is not None]
    using = get_settings().database
    jobs = Job.objects.using(using).find_many(wanted)
    show_details(using, jobs.values())
    entries: list[dict[str, Any]] = []
    for token in tokens:
        job = jobs.get(ids[token] or 0)
        if job is None:
            entries.append({"token": token, "job": None, "error": UNKNOWN})
        else:
            entries.append({"token": token, "job": describe_job(job), "error": None})
    response = JsonResponse({"jobs": entries})
    if not all(job.is_final for job in jobs.values()):
        response["Retry-After"] = "1"
    return response
