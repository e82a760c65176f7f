"""The dashboard mutes problems, shows what is muted, and ends it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_tenantqueue.models import Change, Mute
from tests.admin.conftest import operator, text_of, url_of
from tests.factories import make_job, make_queue, make_worker

__all__ = ["operator"]
pytestmark = pytest.mark.django_db
HOME = "/admin/tenantqueue/"
FORM = "/admin/tenantqueue/mute/problem/?code=queue_paused"
PERMISSIONS = ("view_tenantqueue", "add_mute", "view_mute", "delete_mute")
PAUSED = "eady jobs in paused queues, or in queues without slots: "


@pytest.fixture(autouse=True)
def paused_queues(db: None) -> None:
    make_worker()
    for tenant in ("acme", "zebra"):
        make_job(make_queue(tenant, "mail", paused=True))


def sees_acme(user: Any) -> list[str] | None:
    return None if user.is_superuser else ["acme"]


@pytest.fixture
def limited(settings: Any) -> None:
    settings.TENANTQUEUE = {"VISIBLE_TENANTS": "tests.admin.test_mutes.sees_acme"}


def post(client: Client, objects: Any = ("acme",), **values: Any) -> Any:
    chosen = [one if one == "all" else json.dumps([one, "mail"]) for one in objects]
    given = {"how_long": "hour", "reason": "known", **values}
    return client.post(FORM, {"objects": chosen, **given}, follow=True)


def test_problem_has_a_link_to_the_form_which_lists_its_objects(admin_client: Client) -> None:
    assert f'href="{FORM}"' in admin_client.get(HOME).content.decode()

    text = text_of(admin_client.get(FORM))

    assert f"R{PAUSED}acme/mail, zebra/mail" in text
    assert "all, also those that have it later" in text


def test_muted_object_is_folded_with_who_until_when_and_why(admin_client: Client) -> None:
    response = post(admin_client)

    page = response.content.decode()
    counted, folded = page.split("<details", 1)
    assert "zebra/mail" in counted
    assert "acme/mail" not in counted.partition("tq-problems")[2]
    assert f"R{PAUSED}acme/mail" in folded
    row = Mute.objects.get()
    until = f"{timezone.localtime(row.until):%Y-%m-%d %H:%M}"
    assert f"until {until}, by admin: known" in folded
    assert "1 muted problem" in text_of(response)
    change = Change.objects.get()
    assert (change.action, change.actor, change.source) == ("mute", "admin", "admin")


def test_all_objects_are_muted_also_later_ones(admin_client: Client) -> None:
    post(admin_client, ["all"])
    make_job(make_queue("later", "mail", paused=True))

    assert "later/mail" in admin_client.get(HOME).content.decode().split("<details", 1)[1]


def test_mute_ends_tomorrow_or_at_the_given_time(admin_client: Client) -> None:
    post(admin_client, how_long="tomorrow")
    tomorrow = timezone.localtime() + timedelta(days=1)
    until = timezone.localtime(Mute.objects.get().until)
    assert (until.date(), until.hour, until.minute) == (tomorrow.date(), 9, 0)

    post(admin_client, ["zebra"], how_long="moment", until="2999-05-20T15:30:00")
    assert Mute.objects.get(tenant="zebra").until.year == 2999


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"how_long": "moment"}, "Give a time in the future."),
        ({"how_long": "moment", "until": "2020-05-20T15:30:00"}, "Give a time in the future."),
        ({"how_long": "moment", "until": "9999-12-31T23:59:00"}, "Give a time in the future."),
        ({"reason": " "}, "This field is required."),
        ({"objects": ["other"]}, "Select a valid choice."),
        ({"objects": []}, "This field is required."),
    ],
)
def test_wrong_input_is_told(admin_client: Client, values: Any, said: str) -> None:
    assert said in text_of(post(admin_client, **values))
    assert not Mute.objects.exists()


def test_problem_without_objects_is_muted_as_a_whole(admin_client: Client) -> None:
    url = reverse("admin:tenantqueue_mute_problem") + "?code=maintenance_failed"
    assert "This problem has ended." in text_of(admin_client.get(url, follow=True))
    url = url.replace("maintenance_failed", "worker_silent")
    make_worker(heartbeat_at=timezone.now() - timedelta(hours=1))

    response = admin_client.post(url, {"how_long": "hour", "reason": "known"}, follow=True)

    assert "silent" not in text_of(response).partition("muted problem")[0].partition("Problems")[2]
    row = Mute.objects.get()
    assert (row.code, row.tenant, row.name) == ("worker_silent", None, "")


def test_problem_is_unmuted_on_the_dashboard_and_in_the_list(admin_client: Client) -> None:
    post(admin_client)
    key = str(Mute.objects.get().pk)
    response = admin_client.post(f"{HOME}tenantqueue/overview/", {"unmute": key}, follow=True)
    assert "1 problem is not muted any more." in text_of(response)
    assert not Mute.objects.exists()

    post(admin_client)
    text = text_of(admin_client.get(url_of("mute", "changelist")))
    assert "paused queue acme / mail in 59" in text
    action = {"action": "unmute_selected", "_selected_action": str(Mute.objects.get().pk)}
    admin_client.post(url_of("mute", "changelist"), action)
    assert not Mute.objects.exists()
    assert Change.objects.filter(action="unmute", actor="admin").count() == 2


def test_permissions_decide_who_mutes_and_unmutes(operator: Callable[..., Client]) -> None:
    viewer = operator("view_tenantqueue", "view_mute")
    post(operator(*PERMISSIONS))
    page = viewer.get(HOME).content.decode()

    assert FORM not in page
    assert "by operator-" in page
    assert 'name="unmute"' not in page
    assert viewer.get(FORM).status_code == 403
    key = str(Mute.objects.get().pk)
    assert viewer.post(f"{HOME}tenantqueue/overview/", {"unmute": key}).status_code == 403
    assert Mute.objects.exists()


@pytest.mark.usefixtures("limited")
def test_user_of_a_tenant_mutes_and_sees_only_its_problems(
    operator: Callable[..., Client], admin_client: Client
) -> None:
    client = operator(*PERMISSIONS)
    post(admin_client, ["zebra"], reason="the secret of zebra")
    assert "zebra" not in client.get(HOME).content.decode()
    assert "zebra" not in client.get(FORM).content.decode()
    assert "all, also those" not in client.get(FORM).content.decode()
    assert "zebra" not in client.get(url_of("mute", "changelist")).content.decode()
    for objects in (["zebra"], ["all"]):
        post(client, objects)
    theirs = Mute.objects.get()
    overview = f"{HOME}tenantqueue/overview/"
    response = client.post(overview, {"unmute": [str(theirs.pk), "x"]}, follow=True)
    assert "0 problems are not muted any more." in text_of(response)
    assert [*Mute.objects.all()] == [theirs]
    assert client.get(FORM.replace("queue_paused", "no_worker"), follow=True).redirect_chain

    post(client)

    assert "acme/mail" in client.get(HOME).content.decode().split("<details", 1)[1]
    assert {mute.tenant for mute in Mute.objects.all()} == {"acme", "zebra"}


@pytest.mark.usefixtures("limited")
def test_mute_of_all_tenants_does_not_fold_the_problem_of_a_user_of_one(
    operator: Callable[..., Client], admin_client: Client
) -> None:
    post(admin_client, ["all"], reason="the secret of zebra")

    page = operator(*PERMISSIONS).get(HOME).content.decode()

    assert f"R{PAUSED}acme/mail" in page
    assert "secret" not in page
    assert "<details" not in page
