"""Clients of Fireworq have the limits of their tokens, too."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client, override_settings

from django_tenantqueue.contrib.api.control import make_token
from tests.contrib.api.conftest import EVERY, ApiClient
from tests.contrib.api.test_new_queues import batch
from tests.contrib.api.test_new_queues import wide as wide
from tests.contrib.api.test_token_limits import names
from tests.factories import make_queue

NEEDS = "fireworq schedules"
pytestmark = pytest.mark.django_db


@pytest.mark.django_db
def test_fireworq_client_makes_no_more_queues_than_others(wide: ApiClient) -> None:
    wide.post("/jobs/batch", batch(29))
    _row, secret = make_token("f", tenant="acme", scopes=EVERY)

    def put(name: str) -> int:
        headers = {"Authorization": f"Bearer {secret}"}
        with override_settings(ROOT_URLCONF="tests.contrib.fireworq.urls"):
            return Client().put(f"/fireworq/queue/{name}", "{}", headers=headers).status_code

    assert [put("a"), put("b"), put("a"), put("q1")] == [200, 429, 200, 200]


@pytest.mark.urls("tests.contrib.fireworq.urls")
def test_fireworq_client_puts_and_routes_to_queues_of_its_token(settings: Any) -> None:
    _row, secret = make_token("f", tenant="acme", scopes=EVERY, queues=["mail*"])
    settings.ROOT_URLCONF = "tests.contrib.fireworq.urls"

    def put(path: str, body: str) -> int:
        headers = {"Authorization": f"Bearer {secret}"}
        return Client().put(f"/fireworq{path}", body, headers=headers).status_code

    assert put("/queue/mail-2", "{}") == 200
    assert put("/queue/other", "{}") == 403
    make_queue("acme", "mine")
    assert put("/routing/a", '{"queue_name": "mail-2"}') == 200
    assert put("/routing/a", '{"queue_name": "mine"}') == 403
    assert names() == {"mail-2", "mine"}
