"""The filters of the list of jobs by times, labels and other columns."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.utils import timezone

from django_tenantqueue import bulk
from django_tenantqueue.exceptions import InvalidArgument
from django_tenantqueue.models import Job
from django_tenantqueue.states import State
from django_tenantqueue.status import job_pages
from django_tenantqueue.status.job_conditions import CONDITIONS
from django_tenantqueue.testing import run_pending
from tests.factories import make_job, make_jobs, make_queue
from tests.sample_tasks import bills

from .conftest import text_of
from .forms import say_yes
from .test_job_list import LIST, link, page, shown

pytestmark = pytest.mark.django_db
TUESDAY = datetime(2026, 11, 24, tzinfo=UTC)
HOSTILE = [
    *("'", '"><script>boom()</script>', "%", "%s%(x)s{0}", "\\", "\x00", "\ud800", "9" * 400),
    *("-1", "=", "invoice=", "0001-01-01", "9999-12-31T23:59", "99999d", "NaN", "é" * 3000),
]


def test_invoice_of_last_tuesday_is_found(admin_client: Client) -> None:
    queue = make_queue("acme")
    make_job(queue, created_at=TUESDAY - timedelta(hours=1), args={"search": ["invoice=4711"]})
    wanted = make_job(queue, created_at=TUESDAY, args={"search": ["invoice=4711"]})
    make_job(queue, created_at=TUESDAY, args={"search": ["invoice=4712"]})

    query = {"created_from": "2026-11-24", "created_to": "2026-11-25", "argument": "invoice=4711"}

    assert shown(admin_client, urlencode(query)) == [wanted.pk]


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_values_are_said_or_find_nothing(
    admin_client: Client, name: str, value: str
) -> None:
    make_job(make_queue("acme"))
    encoded = urlencode({name: value, "tenant": "acme"}, errors="surrogatepass")

    response = admin_client.get(f"{LIST}?{encoded}")

    assert response.status_code == 200
    assert "<script>boom" not in page(response)
    assert "No job matches" in page(response) or "<strong>" in page(response)


def test_form_shows_what_is_selected(admin_client: Client) -> None:
    make_job(make_queue("acme"), labels=["nightly"])
    query = "label=nightly&created_from=2026-11-24T02:30&error=%22x&state=ready&tenant=acme"

    with override_settings(TIME_ZONE="Asia/Tokyo"), timezone.override("Asia/Tokyo"):
        text = page(admin_client.get(f"{LIST}?{query}"))

    shown_values = {
        name: html.unescape(value)
        for name, value in re.findall(
            r'id="tq-(\w+)" form="[^"]+" name="\w+" value="([^"]*)"', text
        )
    }
    assert shown_values == {
        **dict.fromkeys(CONDITIONS, ""),
        "label": "nightly",
        "created_from": "2026-11-24T02:30",
        "error": '"x',
    }
    (kept,) = re.findall(r'<form id="tq-typed-created_from" method="get">(.*?)</form>', text)
    assert dict(re.findall(r'name="(\w+)" value="([^"]*)"', kept)) == {
        "state": "ready",
        "tenant": "acme",
    }


def test_a_time_that_cannot_be_read_can_be_mended(admin_client: Client) -> None:
    response = admin_client.get(f"{LIST}?created_from=yesterday")

    assert "yesterday&#x27; is not a time" in page(response)
    assert 'type="text" id="tq-created_from"' in page(response)
    assert 'value="yesterday"' in page(response)


def test_links_select_the_last_hours(admin_client: Client) -> None:
    now = timezone.now()
    queue = make_queue()
    make_job(queue, created_at=now - timedelta(hours=30))
    wanted = make_job(queue, created_at=now - timedelta(hours=2))

    query = link(admin_client.get(LIST), "last 24 hours")

    assert query is not None
    assert shown(admin_client, query) == [wanted.pk]


def test_page_says_when_the_job_was_created_to_which_it_looked(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", 1)
    make_jobs(make_queue(), 20, state=State.SUCCESS, created_at=TUESDAY)

    text = text_of(admin_client.get(f"{LIST}?worker=5"))

    assert "No such job down to" in text
    assert "(created Nov. 24, 2026" in text


def test_a_limited_user_finds_jobs_of_own_tenants_alone(client: Client) -> None:
    own, other = make_queue("acme"), make_queue("zeta")
    columns = {
        "state": State.ERROR,
        "labels": ["nightly"],
        "created_by": "7",
        "worker_id": 5,
        "priority": 120,
        "errors": [{"class": "ValueError"}],
        "args": {"search": ["invoice=4711"]},
    }
    mine = make_job(own, **columns, limit_user="acme/ada", session_key="acme/one")
    make_job(other, **columns, limit_user="zeta/ada", session_key="zeta/one")
    client.force_login(User.objects.create_superuser("ada"))
    past, future = "2000-01-01", "2100-01-01"
    values = {
        "created_from": past,
        "created_to": future,
        "ended_from": past,
        "ended_to": future,
        "label": "nightly",
        "created_by": "7",
        "worker": "5",
        "priority": "120",
        "error": "ValueError",
        "argument": "invoice=4711",
        "limit_user": "ada",
        "session": "one",
    }
    assert values.keys() == CONDITIONS.keys()

    with override_settings(TENANTQUEUE={"VISIBLE_TENANTS": f"{__name__}.sees_acme"}):
        for name, value in values.items():
            assert shown(client, urlencode({name: value})) == [mine.pk], name
            other_tenant = urlencode({name: value, "tenant": "zeta"})
            assert shown(client, other_tenant) == [], name
            by_id = urlencode({name: value, "queue_id": other.pk})
            assert shown(client, by_id) == [], name


def sees_acme(user: User) -> list[str]:
    return ["acme"]


def test_bulk_actions_take_the_filters(admin_client: Client) -> None:
    queue = make_queue("acme", paused=True)
    wanted = make_job(queue, state=State.ERROR, labels=["nightly"])
    other = make_job(queue, state=State.ERROR)
    data = {
        "action": "retry_selected",
        "_selected_action": [str(wanted.pk)],
        "index": "0",
        "select_across": "1",
    }

    question = admin_client.post(f"{LIST}?label=nightly&created_from=1h", data)

    assert "label: nightly" in text_of(question)
    assert re.search(r"created from: \w+\. \d", text_of(question))
    say_yes(admin_client, question)
    run_pending()
    assert Job.objects.get(pk=wanted.pk).state == State.READY
    assert Job.objects.get(pk=other.pk).state == State.ERROR


def test_a_time_from_now_is_fixed_when_a_bulk_action_starts() -> None:
    job = bulk.start("retry", {"state": "error", "ended_from": "2h"})

    (filters,) = [job.args["kwargs"]["filters"]]
    ago = timezone.now() - datetime.fromisoformat(filters["ended_from"])
    assert abs(ago - timedelta(hours=2)) < timedelta(minutes=1)
    with pytest.raises(InvalidArgument, match="is not a time"):
        bulk.start("retry", {"ended_from": "soon"})


def test_keys_of_searchable_arguments_are_not_shown(admin_client: Client) -> None:
    job = bills.delay(4711)

    assert job.refresh().args["search"] == ["invoice=4711"]
    text = page(admin_client.get(f"{LIST}{job.pk}/change/"))
    assert "4711" in text
    assert "invoice=4711" not in text
