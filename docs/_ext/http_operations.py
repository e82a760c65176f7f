"""Tables of the operations of the HTTP API, from its OpenAPI document."""

from __future__ import annotations

from typing import Any

COLUMNS = "| request | what it does | scope | takes | statuses |\n| --- | --- | --- | --- | --- |"


def operations_tables() -> str:
    """Return a heading and a table for each kind of object."""
    from django_tenantqueue.contrib.api.urls import api  # reads Django's settings

    document = api.get_openapi_schema(path_prefix="")
    parts = document["components"]["schemas"]
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, each in methods.items():
            by_tag.setdefault(each["tags"][0], []).append(_row(path, method, each, parts))
    return "\n\n".join(
        f"## {tag.capitalize()}\n\n{COLUMNS}\n" + "\n".join(rows) for tag, rows in by_tag.items()
    )


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
