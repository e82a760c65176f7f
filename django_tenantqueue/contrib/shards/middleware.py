"""Chooses the database of the admin's pages: `?shard=eu2`, kept in the session."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve

from ...conf import database
from .routes import aliases, are_sharded

logger = logging.getLogger("django_tenantqueue")

PARAMETER = "shard"
KEY = "tenantqueue_shard"
"""The key in the session."""
IN_FIRST = "tenantqueue_api_"
"""Beginning of the names of pages whose rows are in the first database: API tokens."""


class ShardMiddleware:
    """Shows one database at a time in the admin. Put it after SessionMiddleware.

    Other pages are not changed: the tenant or the id decides there.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        alias = _chosen(request) if are_sharded() else None
        if alias is None:
            return self.get_response(request)
        request.tenantqueue_shard = alias  # type: ignore[attr-defined]
        with database(alias):
            response = self.get_response(request)
        if isinstance(response, StreamingHttpResponse) and not response.is_async:
            response.streaming_content = _inside(alias, response.streaming_content)
        return response

    def process_template_response(self, request: HttpRequest, response: Any) -> Any:
        """Name the database in the header of the admin's pages."""
        alias, context = _used(request), response.context_data
        if alias is not None and context is not None and "site_header" in context:
            context["site_header"] = f"{context['site_header']} – {alias}"
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 503 with links to the other databases while the chosen one is down."""
        alias = _used(request)
        if alias is None or not isinstance(error, OperationalError | InterfaceError):
            return None
        logger.warning("a page of the admin failed, the database %r is down: %s", alias, error)
        values = {"parameter": PARAMETER, "current": alias, "aliases": aliases(), "is_down": True}
        text = render_to_string("admin/tenantqueue_shards/panel.html", values)
        return HttpResponse(text, status=503)


def _used(request: HttpRequest) -> str | None:
    return getattr(request, "tenantqueue_shard", None)


def _chosen(request: HttpRequest) -> str | None:
    """Return the database of a page of the admin; None for other pages."""
    try:
        match = resolve(request.path_info, getattr(request, "urlconf", None))
    except Resolver404:
        return None
    if "admin" not in match.app_names or (match.url_name or "").startswith(IN_FIRST):
        return None
    asked = request.GET.get(PARAMETER)
    if asked is not None:
        # else the lists of the admin would take it for a filter
        query = request.GET.copy()
        del query[PARAMETER]
        request.GET = query  # type: ignore[assignment]
        if asked in aliases():
            request.session[KEY] = asked
    alias = request.session.get(KEY)
    return alias if alias in aliases() else aliases()[0]


def _inside(alias: str, parts: Any) -> Iterator[Any]:
    """Read each part of a download in its database."""
    left = iter(parts)
    while True:
        with database(alias):
            try:
                part = next(left)
            except StopIteration:
                return
        yield part
