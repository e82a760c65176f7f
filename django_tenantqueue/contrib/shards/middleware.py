"""Chooses the database of the admin's pages: `?shard=eu2` in their addresses.

The address of each page of the package names its database. So what a page posts or reads again
goes to the database that it shows, whatever other tabs show. The session has no part in that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db import InterfaceError, OperationalError, connections
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.template.loader import render_to_string
from django.urls import Resolver404, ResolverMatch, resolve, reverse

from ...conf import database
from ...exceptions import Unsupported
from .routes import DOWN, aliases, are_sharded, shard_of_id

logger = logging.getLogger("django_tenantqueue")

PARAMETER = "shard"
KEY = "tenantqueue_shard"
"""The key in the session: the database of a page whose address names none."""
REFRESH = "X-Tenantqueue-Refresh"
"""The header of the requests of refresh.js."""
IN_FIRST = "tenantqueue_api_"
"""Beginning of the names of pages whose rows are in the first database: API tokens."""
OF_ID = "tenantqueue_job_", "tenantqueue_concurrentjobmonitor_"
"""Beginnings of the names of pages of rows whose ids name a database."""
MONITOR = "monitor"
ID_ARGUMENTS = "object_id", "monitor_id"
READING = "GET", "HEAD", "OPTIONS"
LOST = "08", "57P0"
"""Beginnings of SQLSTATE codes of a lost connection."""


class ShardMiddleware:
    """Shows one database at a time in the admin. Put it after AuthenticationMiddleware.

    Other pages are not changed: the tenant or the id decides there.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        page = _page_of_admin(request) if are_sharded() else None
        if page is None:
            return self.get_response(request)
        asked = _take_asked(request)
        named = _of_id(page) or asked or _of_referer(request)
        alias = named or _last_shown(request)
        reads, refreshes = request.method in READING, REFRESH in request.headers
        if request.user.is_authenticated:
            if _is_of_package(page):
                if named is None and (refreshes or not reads):
                    return _unknown(request, page)
                if asked != alias and not refreshes:
                    return _redirect(request, alias)
            if asked is not None and reads and not refreshes and asked != _last_shown(request):
                request.session[KEY] = asked
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
        if alias is None or not _is_down(alias, error):
            return None
        logger.warning(
            "a page of the admin failed, the database %r is down: %s", alias, error, exc_info=error
        )
        page = request.resolver_match
        url = _dashboard(request, page) if page is not None and _of_id(page) else ""
        return _panel(503, current=alias, url=url, is_down=True)


def _used(request: HttpRequest) -> str | None:
    return getattr(request, "tenantqueue_shard", None)


def _is_down(alias: str, error: Exception) -> bool:
    """Whether an error says that this database cannot be reached, and it still cannot be."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    code = getattr(error.__cause__, "sqlstate", None)
    if code is not None and not code.startswith(LOST):
        return False
    connection = connections[alias]
    if connection.connection is not None:
        return not connection.is_usable()
    try:
        connection.ensure_connection()
    except DOWN:
        return True
    return False  # the error is of another database, or of a connection that was lost once


def _page_of_admin(request: HttpRequest) -> ResolverMatch | None:
    """Return a page of the admin that shows a chosen database; None for other pages."""
    try:
        match = resolve(request.path_info, getattr(request, "urlconf", None))
    except Resolver404:
        return None
    if "admin" not in match.app_names or (match.url_name or "").startswith(IN_FIRST):
        return None
    return match


def _is_of_package(page: ResolverMatch) -> bool:
    name = page.kwargs.get("app_label") if page.url_name == "app_list" else page.url_name
    return (name or "").startswith("tenantqueue")


def _take_asked(request: HttpRequest) -> str | None:
    """Return the database that the address names, and remove it from request.GET.

    The lists of the admin would take it for a filter.
    """
    if PARAMETER not in request.GET:
        return None
    query = request.GET.copy()
    asked = query.pop(PARAMETER)[-1]
    request.GET = query  # type: ignore[assignment]
    return asked if asked in aliases() else None


def _of_id(page: ResolverMatch) -> str | None:
    """Return the database that the id in the address of a job or a monitor names."""
    if not (page.url_name or "").startswith(OF_ID):
        return None
    text = next((str(page.kwargs[name]) for name in ID_ARGUMENTS if name in page.kwargs), "")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    try:
        return shard_of_id(int(text), is_monitor=MONITOR in str(page.url_name))
    except Unsupported:
        return None


def _of_referer(request: HttpRequest) -> str | None:
    """Return the database of the page that has the link, the form or the script."""
    try:
        asked = parse_qs(urlsplit(request.headers.get("Referer", "")).query).get(PARAMETER, [""])
    except ValueError:
        return None
    return asked[-1] if asked[-1] in aliases() else None


def _last_shown(request: HttpRequest) -> str:
    alias: str = request.session.get(KEY, "")
    return alias if alias in aliases() else aliases()[0]


def _redirect(request: HttpRequest, alias: str) -> HttpResponse:
    """Send the browser to the same address with the database. What it posts is posted there."""
    query = request.GET.copy()
    query[PARAMETER] = alias
    path, _, _ = request.get_full_path().partition("?")
    response = HttpResponseRedirect(f"{path}?{query.urlencode()}")
    if request.method not in READING:
        response.status_code = 307
    return response


def _unknown(request: HttpRequest, page: ResolverMatch) -> HttpResponse:
    """Refuse what could act on, or show, another database than the page does."""
    return _panel(409, url=_dashboard(request, page), is_unknown=True)


def _dashboard(request: HttpRequest, page: ResolverMatch) -> str:
    urls = getattr(request, "urlconf", None)
    return reverse("admin:app_list", urls, args=["tenantqueue"], current_app=page.namespace)


def _panel(status: int, **values: Any) -> HttpResponse:
    values = {"parameter": PARAMETER, "aliases": aliases(), **values}
    text = render_to_string("admin/tenantqueue_shards/panel.html", values)
    return HttpResponse(text, status=status)


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
