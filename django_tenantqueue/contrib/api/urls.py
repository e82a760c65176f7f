"""Include these: `path("api/", include("django_tenantqueue.contrib.api.urls"))`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, re_path
from django.views.decorators.csrf import csrf_exempt

from ...conf import database
from ...exceptions import Unsupported

try:
    import ninja  # noqa: F401
except ImportError as error:
    raise Unsupported(
        f"the HTTP API needs a package that is not installed ({error.name}): "
        "pip install 'django-tenantqueue[api]'"
    ) from None

from ninja.openapi.docs import Swagger
from ninja.parser import Parser

from . import follow, jobs, tuning
from .error_responses import HANDLED, problem, problem_of
from .openapi import DocumentedAPI

app_name = "tenantqueue_api"


class StrictParser(Parser):
    """Rejects NaN and Infinity, which Python's JSON parser accepts."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the value of the body. Raises ValueError."""
        return json.loads(request.body, parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


api = DocumentedAPI(
    title="django_tenantqueue",
    version="1",
    description="Submit and follow jobs. Tune queues, sessions, monitors and schedules.",
    urls_namespace=app_name,
    docs=Swagger(),
    parser=StrictParser(),
)
for kind in HANDLED:
    api.add_exception_handler(kind, problem_of)
core = (jobs.router, follow.router, tuning.queues, tuning.session_router, tuning.monitors)
for router in core:
    api.add_router("", router)
if apps.is_installed("django_tenantqueue.contrib.schedules"):
    from .schedules import router as schedules

    api.add_router("", schedules)
if apps.is_installed("django_tenantqueue.contrib.routing"):
    from .routings import router as routings

    api.add_router("", routings)


def _as_problem(response: HttpResponseBase) -> HttpResponseBase:
    """Return a problem in place of Django's answer to an unknown method."""
    if response.status_code != 405:
        return response
    allow = ", ".join(sorted(response.headers.get("Allow", "").split(", ")))
    return problem(405, f"Use one of: {allow}.", {"Allow": allow})


def _wrapped(view: Callable[..., Any]) -> Callable[..., Any]:
    """Return a view whose errors are all problems, outside of ATOMIC_REQUESTS.

    Operations have their own transactions, and coroutines cannot be in one.
    """
    if iscoroutinefunction(view):

        @wraps(view)
        async def awaited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with database(None):  # Needs switches it
                return _as_problem(await view(request, *args, **kwargs))

        wrapped: Callable[..., Any] = awaited
    else:

        @wraps(view)
        def called(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with database(None):
                return _as_problem(view(request, *args, **kwargs))

        wrapped = called
    for alias in settings.DATABASES:
        wrapped = transaction.non_atomic_requests(using=alias)(wrapped)
    return csrf_exempt(wrapped)


@csrf_exempt
def not_found(request: HttpRequest) -> HttpResponse:
    """Answer 404 below the path of the API."""
    return problem(404, f"There is no path {request.path!r}.")


urlpatterns: list[URLPattern] = []
for pattern in api.urls[0]:
    assert isinstance(pattern, URLPattern), "ninja makes no others"
    pattern.callback = _wrapped(pattern.callback)
    urlpatterns.append(pattern)
urlpatterns.append(re_path(r"^.*$", not_found))
