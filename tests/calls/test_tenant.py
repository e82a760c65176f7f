"""Whose work is being done."""

from __future__ import annotations

import pytest
from django.test import override_settings

from django_tenantqueue import get_tenant, use_tenant
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.testing import run_pending
from tests.sample_tasks import resolved
from tests.testapp.tasks import fail_for_good, noop, whoami

RESOLVER = {"TENANT_RESOLVER": "tests.sample_tasks.tenant_of_request"}


def test_there_is_no_tenant_when_none_is_set():
    assert get_tenant() == ""


def test_tenant_is_reset_when_the_block_ends():
    with use_tenant("acme"):
        with use_tenant("globex"):
            assert get_tenant() == "globex"
        assert get_tenant() == "acme"
    assert get_tenant() == ""


@override_settings(TENANTQUEUE=RESOLVER)
def test_resolver_is_asked_when_no_tenant_is_set():
    assert get_tenant() == "from-resolver"
    with use_tenant(""):
        assert get_tenant() == ""


@pytest.mark.parametrize(("answer", "tenant"), [(None, ""), ("x", "x")])
@override_settings(TENANTQUEUE=RESOLVER)
def test_tenant_is_empty_when_the_resolver_knows_none(monkeypatch, answer, tenant):
    monkeypatch.setitem(resolved, "tenant", answer)

    assert get_tenant() == tenant


@override_settings(TENANTQUEUE=RESOLVER)
def test_resolver_is_named_when_it_returns_something_else(monkeypatch):
    monkeypatch.setitem(resolved, "tenant", 5)

    with pytest.raises(InvalidOption, match="tenant_of_request' returned 5: it must be a str"):
        get_tenant()


@pytest.mark.parametrize(
    ("path", "message"),
    [("tests.nowhere.x", "No module named"), ("tests.sample_tasks.resolved", "is not callable")],
)
def test_resolver_is_named_when_it_cannot_be_used(path, message):
    with (
        override_settings(TENANTQUEUE={"TENANT_RESOLVER": path}),
        pytest.raises(InvalidOption, match=message),
    ):
        get_tenant()


@pytest.mark.parametrize("tenant", ["a\x00", "\ud800"], ids=ascii)
@override_settings(TENANTQUEUE=RESOLVER)
def test_tenant_is_refused_when_it_cannot_be_stored(monkeypatch, tenant):
    monkeypatch.setitem(resolved, "tenant", tenant)

    with pytest.raises(InvalidOption, match=r"tenant_of_request' returned .*: it has NUL"):
        get_tenant()
    with pytest.raises(InvalidOption, match=r"use_tenant\(\) was given"), use_tenant(tenant):
        pass


@pytest.mark.django_db
@override_settings(TENANTQUEUE=RESOLVER)
def test_option_comes_before_context_and_context_before_resolver_when_a_job_is_enqueued():
    jobs = [whoami.delay()]
    with use_tenant("from-context"):
        jobs += [whoami.delay(), whoami.using(tenant="from-option").delay()]
        jobs += [whoami.using(tenant="").delay()]

    expected = ["from-resolver", "from-context", "from-option", ""]
    assert [job.queue.tenant for job in jobs] == expected
    run_pending()
    assert [job.refresh().result["tenant"] for job in jobs] == expected


@pytest.mark.django_db
@pytest.mark.parametrize("task", [noop, fail_for_good], ids=["success", "failure"])
def test_tenant_is_reset_when_a_job_has_run(task):
    task.using(tenant="acme").delay()
    run_pending()

    assert get_tenant() == ""


@pytest.mark.parametrize("tenant", [7, None, b"acme"])
def test_tenant_that_is_no_text_is_refused(tenant):
    with (
        pytest.raises(InvalidOption, match=r"use_tenant\(\) was given .*: it must be a str"),
        use_tenant(tenant),
    ):
        pass
