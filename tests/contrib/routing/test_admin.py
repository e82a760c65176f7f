"""Routings in the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from django_tenantqueue.contrib.routing.control import make_routing
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.features import Problem
from django_tenantqueue.status.fleet_report import read_report
from tests.admin.conftest import text_of, url_of
from tests.admin.forms import form_values, inputs_of
from tests.factories import made_changes, make_queue
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue_routing/routing/"
ADD = f"{LIST}add/"


def add(client: Client, **values: Any) -> str:
    blank = {"pattern": "", "queue": "", "_save": "Save"}
    whose = inputs_of(values.pop("tenant", None))
    return text_of(client.post(ADD, {**blank, **whose, **values}, follow=True))


def test_routing_is_added_edited_in_the_list_and_deleted(admin_client: Client) -> None:
    make_queue("acme", "heavy")
    make_queue("acme", "heavier")
    new = {"tenant": "acme", "pattern": "tests.*", "queue": "heavy"}
    assert "was added successfully" in add(admin_client, **new)
    assert noop.using(tenant="acme").delay().queue.name == "heavy"

    values = form_values(admin_client.get(LIST), "form-0-queue")
    values |= {"form-0-queue": "heavier", "_save": "Save"}
    assert "was changed successfully" in text_of(admin_client.post(LIST, values, follow=True))
    assert noop.using(tenant="acme").delay().queue.name == "heavier"
    page = url_of("routing", "change", Routing.objects.get().pk)
    assert 'name="pattern"' not in admin_client.get(page).content.decode()
    admin_client.post(url_of("routing", "delete", Routing.objects.get().pk), {"post": "yes"})

    assert not Routing.objects.exists()
    assert [change[0] for change in made_changes()] == ["add", "tune", "delete"]


def test_tenant_of_a_new_routing_is_chosen(admin_client: Client) -> None:
    shown = form_values(admin_client.get(ADD), "pattern")
    assert (shown["tenant_choice"], shown["tenant"]) == ("one", "")
    new = {"pattern": "x", "queue": "default"}

    for wrong in ({}, {"tenant": ""}, {"tenant_choice": ""}, {"tenant_choice": "one"}):
        assert "Give the name of the tenant" in text_of(admin_client.post(ADD, {**new, **wrong}))
    for choice in ("every", "none"):
        answer = admin_client.post(ADD, {**new, "tenant_choice": choice, "tenant": "acme"})
        assert "Remove the name, or choose one tenant." in text_of(answer)
    answer = admin_client.post(ADD, {**new, "tenant_choice": "all"})
    assert "Choose one tenant, no tenant or every tenant." in text_of(answer)
    assert not Routing.objects.exists()
    for tenant in (None, "", "acme"):
        add(admin_client, **new, tenant=tenant)

    found = dict(Routing.objects.values_list("tenant", "pk"))
    assert found.keys() == {None, "", "acme"}
    for tenant, text in ((None, "every tenant"), ("", "no tenant"), ("acme", "acme")):
        page = text_of(admin_client.get(url_of("routing", "change", found[tenant])))
        assert f"Tenant: {text}" in page
        assert f"{text} / x" in text_of(admin_client.get(LIST))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"pattern": "x", "queue": "hevy"}, "so no job can be routed to it. Did you mean"),
        ({"pattern": "x", "queue": "heavy", "tenant": "globex"}, "has no queue &#x27;heavy&#x27;"),
        ({"pattern": "x", "queue": "old", "tenant": "acme"}, "is retired and takes no new jobs"),
        ({"pattern": "taken", "queue": "heavy"}, "already exists"),
        ({"pattern": "", "queue": "heavy"}, "This field is required"),
    ],
)
def test_operator_is_told_what_is_wrong_with_a_new_routing(
    admin_client: Client, values: dict[str, str], said: str
) -> None:
    make_queue("acme", "heavy")
    make_queue("acme", "old", retired=True)
    make_routing("taken", "heavy")

    assert said in add(admin_client, **values)
    assert Routing.objects.count() == 1


def test_list_refuses_a_missing_queue_and_shows_conflicts(admin_client: Client) -> None:
    make_queue("acme", "heavy")
    row = make_routing("x", "default", tenant="acme")
    shown = form_values(admin_client.get(LIST), "form-0-queue")

    wrong = admin_client.post(LIST, {**shown, "form-0-queue": "hevy", "_save": "Save"})
    assert "has no queue &#x27;hevy&#x27;" in wrong.content.decode()
    make_routing("x", "heavy", tenant="acme")
    late = admin_client.post(LIST, {**shown, "form-0-queue": "admin", "_save": "Save"})
    assert "meanwhile another operator set it to heavy" in text_of(late)
    assert Routing.objects.get(pk=row.pk).queue == "heavy"


def test_page_shows_a_conflict(admin_client: Client) -> None:
    make_queue("acme", "heavy")
    row = make_routing("x", "default", tenant="acme")
    page = url_of("routing", "change", row.pk)
    shown = form_values(admin_client.get(page), "queue")
    make_routing("x", "heavy", tenant="acme")

    late = admin_client.post(page, {**shown, "queue": "admin", "_save": "Save"})

    assert "meanwhile another operator set it to heavy" in text_of(late)


def test_empty_list_says_what_a_routing_is_for(admin_client: Client) -> None:
    assert "Add a routing to send new jobs of a task to another queue" in text_of(
        admin_client.get(LIST)
    )


def test_routing_to_a_retired_queue_is_a_problem(admin_client: Client) -> None:
    queue = make_queue("acme", "heavy")
    make_routing("x", "heavy", tenant="acme")
    make_routing("y", "heavy")
    assert problems() == []

    queue.retired = True
    queue.save()

    (found,) = problems()
    assert found.text == "routings to retired queues, whose jobs are rejected: acme / x → heavy"
    assert LIST in admin_client.get("/admin/tenantqueue/").content.decode()


def problems() -> list[Problem]:
    found = read_report("default", jobs=0).problems
    return [problem for problem in found if problem.where == "routings"]
