"""What the page of a job says of the jobs before and behind it."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils.html import strip_tags

from django_tenantqueue import Placeholder
from django_tenantqueue.models import Job
from django_tenantqueue.operations import control
from django_tenantqueue.testing import run_pending
from tests.factories import make_job
from tests.testapp.tasks import add, echo, fail, noop

from .conftest import url_of

pytestmark = pytest.mark.django_db
FACT = re.compile(r"<dt>(.*?)</dt><dd>(.*?)</dd>")


def facts_of(client: Client, job: Job) -> dict[str, str]:
    page = client.get(url_of("job", "change", job.pk)).content.decode()
    return {name: strip_tags(value) for name, value in FACT.findall(page)}


def test_pages_of_a_chain_link_to_each_other(admin_client: Client) -> None:
    job = add.using(on_success=echo.call(Placeholder("result")), on_end=noop.call()).delay(1)
    assert facts_of(admin_client, job)["on success"] == "tests.testapp.tasks.echo"

    first, second, third = run_pending()

    facts = facts_of(admin_client, first)
    assert facts["on success"] == f"#{second.pk} tests.testapp.tasks.echo"
    assert facts["on end"] == f"#{third.pk} tests.testapp.tasks.noop"
    assert facts_of(admin_client, second)["after job"] == f"#{first.pk}"
    page = admin_client.get(url_of("job", "change", first.pk)).content.decode()
    assert f'<a href="{url_of("job", "change", second.pk)}">#{second.pk}</a>' in page


def test_page_of_a_failed_job_says_that_the_rest_was_not_enqueued(admin_client: Client) -> None:
    call = add.using(on_success=echo.call("x")).call(1)
    job = fail.using(max_attempts=1, on_success=call).delay()
    run_pending()

    said = facts_of(admin_client, job)["on success"]

    assert said.startswith("tests.testapp.tasks.add → tests.testapp.tasks.echo (not enqueued")
    control.retry([job.pk])
    assert "not enqueued" not in facts_of(admin_client, job)["on success"]


@pytest.mark.parametrize("spoilt", [3, ["x", None, {}], {"on": "success"}, [{"on": "success"}]])
def test_page_is_shown_when_raw_sql_has_spoilt_the_row(admin_client: Client, spoilt) -> None:
    job = make_job(follow_ups=spoilt)

    assert admin_client.get(url_of("job", "change", job.pk)).status_code == 200


def test_arguments_of_what_follows_are_not_shown(admin_client: Client) -> None:
    job = add.using(on_success=echo.call("a secret")).delay(1)
    page = admin_client.get(url_of("job", "change", job.pk)).content.decode()
    listed = admin_client.get(url_of("job", "changelist")).content.decode()

    assert "a secret" not in page + listed
    assert Job.objects.get(pk=job.pk).follow_ups[0]["args"] == {"args": ["a secret"]}
