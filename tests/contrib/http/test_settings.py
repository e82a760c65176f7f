"""Wrong settings of HTTP jobs are found."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from django_tenantqueue import checks
from django_tenantqueue.calls import sources
from django_tenantqueue.conf import read_settings
from django_tenantqueue.contrib.http import http_job
from django_tenantqueue.contrib.http.settings import HttpSettings
from django_tenantqueue.exceptions import InvalidOption


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"PERMANENT_STATUSES": ["410"]}, "is ['410']: it must be a list of int"),
        ({"PERMANENT_STATUSES": ["!404"]}, "has '!404', but '!' leaves out an entry"),
        ({"MAX_REDIRECTS": -1}, "TENANTQUEUE['HTTP']['MAX_REDIRECTS'] is -1: it must be 0 or more"),
        ({"BREAKER_FAILURES": 0}, "TENANTQUEUE['HTTP']['BREAKER_FAILURES'] is 0"),
    ],
    ids=str,
)
def test_setting_is_named_when_it_is_wrong(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        read_settings({"HTTP": raw})

    assert message in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"SECRETS": "tests.nowhere.secrets_of"},
        {"TENANT_HOSTS": "tests.sample_tasks.nothing"},
    ],
    ids=str,
)
def test_path_is_found_when_it_cannot_be_imported(settings: dict[str, Any]) -> None:
    with override_settings(TENANTQUEUE={"HTTP": settings}):
        (found,) = checks.check_settings()

    assert found.id == "tenantqueue.E004"
    assert "which cannot be used" in found.msg


def test_statuses_come_on_top_of_the_default() -> None:
    def statuses(*given: object) -> tuple[int, ...]:
        raw = {"HTTP": {"PERMANENT_STATUSES": [*given]}}
        return read_settings(raw)[HttpSettings].permanent_statuses

    assert statuses() == (410,)
    assert statuses(404, 410) == (410, 404)
    assert statuses("!410", 404) == (404,)
    assert statuses("!*") == ()


def test_every_public_host_is_allowed_until_hosts_are_listed() -> None:
    assert HttpSettings().hosts == ("*",)
    assert read_settings({"HTTP": {"ALLOWED_HOSTS": []}})[HttpSettings].hosts == ()


def test_http_job_needs_no_wrapper_for_coroutines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_tasks", {"http": http_job})

    with override_settings(TENANTQUEUE={"WRAPPERS": ["tests.sample_tasks.noting_wrapper"]}):
        assert checks.check_coroutines() == []
