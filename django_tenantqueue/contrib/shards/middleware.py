"""Chooses the database of the admin's pages: `?shard=eu2` in their addresses.

The address of each page of the package names its database. So what a page posts or reads again
goes to the database that it shows, whatever other tabs show. The session has no part in that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.contrib.admin import site as default_site
from django.contrib.admin.sites import all_sites
from django.db import InterfaceError, OperationalError, connections
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import Resolver404, ResolverMatch, resolve, reverse
from django.utils.translation import gettext

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
LINKS = "admin/tenantqueue_shards/links.html"
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
        if (page.url_name or "").startswith(IN_FIRST):
            return self.get_response(request)
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
        """Name the database in the header of the admin's pages, and link to the others."""
        alias, context, page = _used(request), response.context_data, request.resolver_match
        if alias is None or context is None or page is None or not _shows_rows(page):
            return response
        if "site_header" in context:
            context["site_header"] = f"{context['site_header']} – {alias}"
        if page.url_name == "app_list" or str(page.url_name).endswith("_changelist"):
            links = {"parameter": PARAMETER, "aliases": aliases(), "current": alias}
            context["database_links"] = render_to_string(LINKS, links)
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
        assert page is not None  # a page of the admin
        return _refuse(
            request,
            page,
            503,
            gettext("The database “%s” is down") % alias,
            gettext("Its jobs wait until it works again. Show another database:"),
            url=_dashboard(request, page) if _of_id(page) else "",
        )


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
    """Return a page of the admin; None for other pages."""
    try:
        match = resolve(request.path_info, getattr(request, "urlconf", None))
    except Resolver404:
        return None
    return match if "admin" in match.app_names else None


def _is_of_package(page: ResolverMatch) -> bool:
    name = page.kwargs.get("app_label") if page.url_name == "app_list" else page.url_name
    return (name or "").startswith("tenantqueue")


def _shows_rows(page: ResolverMatch) -> bool:
    """Whether the page has rows of a database, or links to them."""
    return _is_of_package(page) or page.url_name == "index"


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
    return _refuse(
        request,
        page,
        409,
        gettext("Nothing was changed"),
        gettext("It is unknown which database this page showed. Open it again from one of them:"),
        url=_dashboard(request, page),
    )


def _dashboard(request: HttpRequest, page: ResolverMatch) -> str:
    urls = getattr(request, "urlconf", None)
    return reverse("admin:app_list", urls, args=["tenantqueue"], current_app=page.namespace)


def _refuse(
    request: HttpRequest, page: ResolverMatch, status: int, title: str, text: str, *, url: str
) -> HttpResponse:
    """Return a page with links to the databases."""
    site = next((each for each in all_sites if each.name == page.namespace), default_site)
    values = {
        **site.each_context(request),
        "title": title,
        "text": text,
        "parameter": PARAMETER,
        "aliases": aliases(),
        "url": url,
    }
    return render(request, "admin/tenantqueue_shards/no_database.html", values, status=status)


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
