"""A walk over all pages of the package in the admin of a site, as one user."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import product
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpResponseBase
from django.test import Client, RequestFactory
from django.urls import reverse

from tests.site import models_of_ours
from tests.testapp.tasks import noop

VALUES: dict[str, list[Any]] = {"form": ["csv"], "part": ["arguments", "result", "errors"]}
"""What the addresses of pages take, apart from rows."""
QUERIES: dict[str, list[str]] = {
    "preview": ["cron=*+*+*+*+*"],
    "failure_group": [urlencode({"task": noop.name, "error": "ValueError"})],
    "task": [urlencode({"task": noop.name}), urlencode({"task": noop.name, "tenant": "acme"})],
    "tenant": ["tenant=acme", "tenant="],
}
"""What a page is asked with, by the end of its name. Others are asked without a query."""
PAGED = ("job", "change")
"""Models whose lists have links of their own to other pages."""
ROWS = 6
"""Rows of a model whose pages are opened: the first jobs are in all states."""
REFUSED = (403, 404, 405)
"""Answers to what cannot be had: a page to add a row that only the package makes."""


def listed() -> list[type[Model]]:
    return [model for model in models_of_ours() if model in admin.site._registry]


class Forms(HTMLParser):
    """The names of all inputs of a page, and of its named buttons that submit nothing."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.idle: list[str] = []
        self._forms = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._forms += tag == "form"
        if tag in ("input", "select", "button", "textarea"):
            has = dict(attrs)
            name = has.get("name") or ""
            self.names.add(name)
            if name and has.get("type") == "submit" and not self._forms and "form" not in has:
                self.idle.append(name)

    def handle_endtag(self, tag: str) -> None:
        self._forms -= tag == "form"


class Walk:
    """A walk over the pages as one user."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.client = Client(headers={"accept": "text/html"})
        self.client.force_login(user)
        self.seen = 0
        self.failed: list[tuple[str, str]] = []

    def open(self, url: str, post: dict[str, Any] | None = None) -> str:
        """Open a page and return it; note an error."""
        self.seen += 1
        where = url if post is None else f"{url} {post}"
        try:
            answer = self.client.get(url) if post is None else self.client.post(url, post)
            return self._read(where, answer)
        except Exception as error:  # noqa: BLE001 - whatever a theme raises
            self.failed.append((where, f"{type(error).__name__}: {error}"))
            return ""

    def _read(self, where: str, answer: HttpResponseBase) -> str:
        content = b"".join(answer) if answer.streaming else answer.content  # type: ignore[arg-type, attr-defined]
        if "html" in answer.headers["Content-Type"]:
            idle = Forms(content.decode()).idle
            self.failed += [(where, f"the button {name!r} is in no form") for name in idle]
        if answer.status_code not in (200, 302, *REFUSED):
            self.failed.append((where, f"status {answer.status_code}"))
        return content.decode()

    def walk(self, *, asks: bool = False) -> None:
        """Open all pages; `asks`: also lists with each filter and search, and each action."""
        self.open(reverse("admin:index"))
        for label in sorted({model._meta.app_label for model in listed()}):
            self.open(reverse("admin:app_list", args=[label]))
        for model in listed():
            model_admin = admin.site._registry[model]
            for url in self.pages(model, model_admin):
                self.open(url)
            if asks:
                self.ask_list(model, model_admin)

    def pages(self, model: Any, model_admin: Any) -> Iterator[str]:
        """Yield the addresses of the pages of a model, with each row where one is asked for."""
        rows = model.objects.order_by("pk").values_list("pk", flat=True)
        keys = [str(pk) for pk in rows[:ROWS]]
        values = {**VALUES, "object_id": keys, "monitor_id": keys}
        for pattern in model_admin.get_urls():
            if pattern.name is None:  # Django's redirect of old addresses
                continue
            names = list(pattern.pattern.converters)
            for given in product(*(values[name] for name in names)):
                url = reverse(f"admin:{pattern.name}", kwargs=dict(zip(names, given, strict=True)))
                end = pattern.name.removeprefix(f"{model._meta.app_label}_").removeprefix(
                    f"{model._meta.model_name}_"
                )
                yield from (f"{url}?{query}" if query else url for query in QUERIES.get(end, [""]))

    def ask_list(self, model: Any, model_admin: Any) -> None:
        """Open a list with each filter and a search, and press each of its actions."""
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        request = RequestFactory().get(url)
        request.user = self.user
        if not model_admin.has_view_or_change_permission(request):
            return
        changelist = model_admin.get_changelist_instance(request)
        if model._meta.model_name in PAGED and "tq-paginator" not in self.open(url):
            self.failed.append((url, "the list has no links to other pages"))
        for spec in changelist.filter_specs:
            for name in spec.expected_parameters():
                self.open(f"{url}?{name}=1")
            for choice in spec.choices(changelist):
                if "query_string" in choice:
                    self.open(f"{url}{choice['query_string']}")
        if model_admin.search_fields:
            page = self.open(f"{url}?q=a")
            if page and "q" not in Forms(page).names:
                self.failed.append((url, "no input of the page is named as the search"))
        keys = [str(row.pk) for row in changelist.result_list[:2]]
        for action in model_admin.get_actions(request):
            post = {"action": action, ACTION_CHECKBOX_NAME: keys, "index": "0"}
            if keys:
                self.open(url, post)
