"""The metrics as a page: who may read them."""

from __future__ import annotations

import pytest
from django.urls import reverse

pytest.importorskip("prometheus_client")
pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.web.urls")]
TOKEN = "a-token-of-enough-letters"


def scrape(client, **headers: str):
    return client.get(reverse("tenantqueue:metrics"), headers=headers)


def test_page_is_off_when_no_token_is_set(client):
    response = scrape(client)

    assert response.status_code == 404
    assert b"set TENANTQUEUE['METRICS']['ACCESS'] to a token" in response.content


def test_page_is_open_when_the_project_says_so(client, settings):
    settings.TENANTQUEUE = {"METRICS": {"ACCESS": "open"}}

    response = scrape(client)

    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=")
    assert "no-store" in response["Cache-Control"]
    assert b"\ntenantqueue_wanted_workers 0.0\n" in response.content


def test_token_is_asked_for_when_one_is_set(client, settings):
    settings.TENANTQUEUE = {"METRICS": {"ACCESS": TOKEN}}

    assert scrape(client).status_code == 401
    assert scrape(client)["WWW-Authenticate"] == "Bearer"
    for wrong in ("Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer é"):
        assert scrape(client, Authorization=wrong).status_code == 403
    assert scrape(client, Authorization=f"Bearer {TOKEN}").status_code == 200


def test_openmetrics_is_answered_when_the_scraper_accepts_it(client, settings):
    settings.TENANTQUEUE = {"METRICS": {"ACCESS": "open"}}

    response = scrape(client, Accept="application/openmetrics-text; version=1.0.0")

    assert response["Content-Type"].startswith("application/openmetrics-text")
    assert response.content.endswith(b"# EOF\n")


def test_posts_are_rejected(client, settings):
    settings.TENANTQUEUE = {"METRICS": {"ACCESS": "open"}}

    assert client.post(reverse("tenantqueue:metrics")).status_code == 405
