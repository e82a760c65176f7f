"""What a browser would post from a rendered page."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.http import HttpResponse
from django.test import Client

from django_tenantqueue.admin.tenant_input import typed


class _Inputs(HTMLParser):
    def __init__(self, containing: str) -> None:
        super().__init__()
        self.containing = containing
        self.values: dict[str, list[str]] = {}
        self.found: dict[str, list[str]] | None = None
        self.select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name")
        if tag == "form":
            self.values = {}
        if tag == "select":
            self.select = name or ""
        if tag == "option" and "selected" in given and given.get("value"):
            self.values.setdefault(self.select, []).append(given["value"] or "")
        if tag != "input" or name is None or given.get("type") in ("submit", "button"):
            return
        if given.get("type") in ("checkbox", "radio") and "checked" not in given:
            self.values.setdefault(name, [])
            return
        self.values.setdefault(name, []).append(given.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self.containing in self.values:
            self.found = {name: values for name, values in self.values.items() if values}


def form_values(response: HttpResponse, containing: str) -> dict[str, Any]:
    """Return the fields of the form that has an input called `containing`, as it was shown."""
    response.render() if hasattr(response, "render") else None
    parser = _Inputs(containing)
    parser.feed(response.content.decode())
    assert parser.found is not None, f"there is no form with {containing!r}"
    return {
        name: values[0] if len(values) == 1 else values
        for name, values in parser.found.items()
        if name != "csrfmiddlewaretoken"
    }


def inputs_of(tenant: str | None) -> dict[str, str]:
    """Return what the inputs for a tenant post: None is every tenant, "" none."""
    choice, _colon, name = typed(tenant).partition(":")
    return {"tenant_choice": choice, "tenant": name}


def say_yes(client: Client, question: HttpResponse) -> HttpResponse:
    """Post the form of a page that asks, and return the page that follows."""
    address = question.wsgi_request.get_full_path()  # type: ignore[attr-defined]
    return client.post(address, form_values(question, "_apply"), follow=True)
