"""The list of maintenance duties: to look at, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from django_tenantqueue.models import Duty
from tests.factories import make_duty

from .conftest import text_of, url_of

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/duty/"


def test_list_tells_when_a_duty_ran_and_what_it_did(admin_client: Client) -> None:
    now = timezone.now()
    make_duty(
        ran_at=now - timedelta(minutes=2),
        outcome="promoted 5 jobs",
        acted_at=now - timedelta(hours=3),
    )

    text = text_of(admin_client.get(LIST))

    assert "promote OK 2 min ago 12 ms 1,234 web-1 promoted 5 jobs 3 h ago" in text


def test_duty_that_never_found_anything_shows_a_dash(admin_client: Client) -> None:
    make_duty()

    assert "web-1 – –" in text_of(admin_client.get(LIST))


def test_failure_is_marked(admin_client: Client) -> None:
    make_duty(error="LockNotAvailable: timeout")

    text = text_of(admin_client.get(LIST))

    assert " failed " in text
    assert "LockNotAvailable: timeout" in text


def test_list_is_sorted_by_any_column(admin_client: Client) -> None:
    make_duty("promote")
    make_duty("rescue", error="no")

    for column in (1, 2, 3, 4, 5, 6, 7):
        assert admin_client.get(LIST, {"o": str(column)}).status_code == 200


def test_page_shows_the_whole_error(admin_client: Client) -> None:
    error = "x" * 500
    duty = make_duty(error=error)

    content = admin_client.get(url_of("duty", "change", duty.pk)).content.decode()

    assert f"<pre>{error}</pre>" in content
    assert 'name="_save"' not in content


def test_nobody_adds_a_duty(admin_client: Client) -> None:
    assert admin_client.get(url_of("duty", "add")).status_code == 403


def test_nobody_changes_a_duty(admin_client: Client) -> None:
    duty = make_duty()

    response = admin_client.post(url_of("duty", "change", duty.pk), {"name": "other"})

    assert response.status_code == 403
    assert Duty.objects.get().name == "promote"


def test_nobody_deletes_a_duty(admin_client: Client) -> None:
    duty = make_duty()

    response = admin_client.post(url_of("duty", "delete", duty.pk), {"post": "yes"})

    assert response.status_code == 403
    assert Duty.objects.exists()


def test_empty_list_says_what_to_do(admin_client: Client) -> None:
    assert "Start one with python manage.py runworker" in text_of(admin_client.get(LIST))
