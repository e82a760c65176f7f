"""What the tests of the API share: tokens, and a client that sends one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client, override_settings

from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.models import ApiToken
from django_tenantqueue.models import Change
from django_tenantqueue.operations.queues import forget_queues

SETTINGS: dict[str, Any] = {
    "API": {"TASKS": ["tests.*"], "REQUESTS_PER_MINUTE": None},
    "DECLARED_QUEUES": ["other", "reports"],
}


def api_settings(**more: Any) -> dict[str, Any]:
    """Return SETTINGS with other ones of the API."""
    return {**SETTINGS, "API": {**SETTINGS["API"], **more}}


EVERY = tuple(ApiToken.Scope.values)


class ApiClient:
    """Sends requests with one token, and JSON both ways."""

    def __init__(self, secret: str | None = None, prefix: str = "/api") -> None:
        self.client = Client(raise_request_exception=True)
        self.headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        self.prefix = prefix

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        """Return the answer to a request; `json` of it is its body."""
        return self.client.generic(
            method,
            self.prefix + path,
            data=b"" if body is None else json.dumps(body),
            content_type="application/json",
            headers={**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}},
        )

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.send("POST", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.send("PATCH", path, body, **headers)


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    cache.clear()
    forget_queues()
    with override_settings(ROOT_URLCONF="tests.contrib.api.urls", TENANTQUEUE=SETTINGS):
        yield
    cache.clear()


@pytest.fixture
def api_of() -> Callable[..., ApiClient]:
    numbers = iter(range(1000))

    def make(tenant: str | None = "acme", *scopes: str, **columns: Any) -> ApiClient:
        _row, secret = make_token(
            f"client {next(numbers)}", tenant=tenant, scopes=scopes or EVERY, **columns
        )
        Change.objects.all().delete()  # of making the token
        return ApiClient(secret)

    return make


@pytest.fixture
def api(api_of: Callable[..., ApiClient]) -> ApiClient:
    """Return a client that may do everything for the tenant acme."""
    return api_of()
