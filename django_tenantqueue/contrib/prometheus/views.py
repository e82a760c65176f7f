"""The metrics as a page of the project."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ...conf import get_settings, settings_of
from .collector import registry
from .serve import may_read, render
from .settings import PrometheusSettings


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer a scrape of Prometheus.

    401 without a token, 403 with a wrong one; 404 without METRICS_TOKEN, unless METRICS_OPEN.
    """
    settings = settings_of(PrometheusSettings)
    if settings.metrics_token is not None:
        given = request.headers.get("Authorization", "")
        if not given:
            return HttpResponse(
                "no token\n", status=401, headers={"WWW-Authenticate": "Bearer"}, **PLAIN
            )
        if not may_read(given):
            return HttpResponse("wrong token\n", status=403, **PLAIN)
    elif not settings.metrics_open:
        text = "metrics are off: set TENANTQUEUE['METRICS_TOKEN']\n"
        return HttpResponse(text, status=404, **PLAIN)
    body, kind = render(registry(get_settings().database), request.headers.get("Accept", ""))
    return HttpResponse(body, content_type=kind)


PLAIN = {"content_type": "text/plain; charset=utf-8"}
