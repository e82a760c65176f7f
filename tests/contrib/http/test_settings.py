"""Wrong settings of HTTP jobs are found."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from django_tenantqueue import checks
from django_tenantqueue.calls import sources
from django_tenantqueue.conf import read_settings
from django_tenantqueue.contrib.http import http_job
from django_tenantqueue.exceptions import InvalidOption


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"HTTP_PERMANENT_STATUSES": ["410"]}, "is ['410']: it must be a list of int"),
        ({"HTTP_REDIRECTS": -1}, "TENANTQUEUE['HTTP_REDIRECTS'] is -1: it must be 0 or more"),
        ({"HTTP_BREAKER_FAILURES": 0}, "TENANTQUEUE['HTTP_BREAKER_FAILURES'] is 0"),
    ],
    ids=str,
)
def test_setting_is_named_when_it_is_wrong(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        read_settings(raw)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"HTTP_SECRETS": "tests.nowhere.secrets_of"},
        {"HTTP_TENANT_HOSTS": "tests.sample_tasks.nothing"},
    ],
    ids=str,
)
def test_path_is_found_when_it_cannot_be_imported(settings: dict[str, Any]) -> None:
    with override_settings(TENANTQUEUE=settings):
        (found,) = checks.check_settings()

    assert found.id == "tenantqueue.E004"
    assert "which cannot be used" in found.msg


def test_http_job_needs_no_wrapper_for_coroutines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_tasks", {"http": http_job})

    with override_settings(TENANTQUEUE={"WRAPPERS": ["tests.sample_tasks.noting_wrapper"]}):
        assert checks.check_coroutines() == []
