"""Writes the table of operations in docs/reference/http-api.md from the OpenAPI document.

DJANGO_SETTINGS_MODULE=tests.settings python docs/http_api.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "reference" / "http-api.md"
HEAD = """# HTTP API

See [How do other programs submit and follow jobs over HTTP?](../howto/http-api.md) Paths are below
the one at which the project includes `django_tenantqueue.web.api.urls`. `/openapi.json` is the
OpenAPI document, with all members of requests and answers. Each operation also takes the parameter
`tenant`, which a token for all tenants needs.
"""

TAIL = """Every operation can be answered with 401, 403, 422 and 429. Those with a body can be
answered with 400 and 413, too.
"""


def _names(schema: dict[str, Any], parts: dict[str, Any]) -> list[str]:
    if "$ref" in schema:
        schema = parts[schema["$ref"].rsplit("/", 1)[1]]
    return list(schema.get("properties", {}))


def _row(path: str, method: str, each: dict[str, Any], parts: dict[str, Any]) -> str:
    given = [p["name"] for p in each.get("parameters", []) if p["in"] != "path"]
    takes = [f"`{name}`" for name in given if name != "tenant"]
    if "requestBody" in each:
        body = each["requestBody"]["content"]["application/json"]["schema"]
        takes += [f"`{name}`" for name in _names(body, parts)]
    statuses = sorted(int(status) for status in each["responses"])
    ours = ", ".join(str(s) for s in statuses if s < 300 or s in (404, 409))
    return (
        f"| `{method.upper()} {path}` | {each['summary']} | `{each['x-scope']}` "
        f"| {', '.join(takes) or '–'} | {ours} |"
    )


def page(document: dict[str, Any]) -> str:
    """Return the page for an OpenAPI document."""
    parts = document["components"]["schemas"]
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, each in methods.items():
            by_tag.setdefault(each["tags"][0], []).append(_row(path, method, each, parts))
    text = HEAD
    for tag, rows in by_tag.items():
        head = (
            "| request | what it does | scope | takes | statuses |\n| --- | --- | --- | --- | --- |"
        )
        text += f"\n## {tag.capitalize()}\n\n{head}\n" + "\n".join(rows) + "\n"
    return f"{text}\n{TAIL}"


def main() -> None:
    """Write the page."""
    import django

    django.setup()
    from django_tenantqueue.web.api.urls import api

    PAGE.write_text(page(api.get_openapi_schema(path_prefix="")))


if __name__ == "__main__":
    main()
