from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.models import ApiToken
from django_tenantqueue.contrib.api.tokens import authenticate
from django_tenantqueue.models import Change
from tests.admin.conftest import url_of
from tests.admin.forms import form_values, inputs_of, say_yes

pytestmark = pytest.mark.django_db
ADDED = {
    "name": "billing",
    "tenant": "acme",
    "scopes": ["read", "submit"],
    "min_priority": "0",
    "max_priority": "400",
}


def sees_acme(user: User) -> list[str] | None:
    return None if user.is_superuser else ["acme"]


def secret_of(content: str) -> str:
    found = re.search(r"Bearer (tq_[\w-]+)", content)
    assert found is not None
    return found[1]


def test_token_is_shown_once_when_it_is_added(admin_client: Client) -> None:
    answer = admin_client.post(url_of("apitoken", "add"), ADDED)

    secret = secret_of(answer.content.decode())
    token = authenticate(secret)
    assert token is not None
    assert (token.tenant, token.scopes) == ("acme", "read submit")
    assert "no-store" in answer["Cache-Control"]
    change = Change.objects.get()
    assert (change.actor, change.source, change.action) == ("admin", "admin", "add")
    assert token.created_by == "admin"
    for page in (
        url_of("apitoken", "changelist"),
        url_of("apitoken", "changelist") + "export/csv/",
        url_of("apitoken", "change", token.pk),
        url_of("apitoken", "history", token.pk),
        url_of("change", "changelist"),
    ):
        response = admin_client.get(page)
        content = response.getvalue().decode()
        assert response.status_code == 200
        assert secret not in content
        assert token.digest not in content


@pytest.mark.parametrize("whose", [{}, {"tenant_choice": "every", "tenant": ""}])
def test_second_token_of_a_name_is_refused(admin_client: Client, whose: dict[str, str]) -> None:
    values = {**ADDED, **whose}
    admin_client.post(url_of("apitoken", "add"), values)

    answer = admin_client.post(url_of("apitoken", "add"), values)

    assert answer.status_code == 200
    assert "API token with this Tenant and Name already exists." in answer.content.decode()
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01"])
def test_expiry_that_cannot_be_shown_everywhere_is_refused(admin_client: Client, day: str) -> None:
    values = {**ADDED, "expires_at_0": day, "expires_at_1": "23:59:59"}

    answer = admin_client.post(url_of("apitoken", "add"), values)

    assert "its year must be from 1900 to 8999" in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_token_without_scope_is_refused(admin_client: Client) -> None:
    admin_client.post(url_of("apitoken", "add"), {**ADDED, "scopes": []})
    admin_client.post(url_of("apitoken", "add"), {**ADDED, "tenant_choice": "every"})

    assert not ApiToken.objects.exists()


def test_queues_and_priorities_are_shown_and_tuned(admin_client: Client) -> None:
    page = admin_client.get(url_of("apitoken", "add"))
    shown = form_values(page, "min_priority")
    row, _secret = make_token("billing", tenant="acme")
    url = url_of("apitoken", "change", row.pk)

    def save(**changes: str) -> None:
        admin_client.post(url, {**form_values(admin_client.get(url), "queues"), **changes})
        row.refresh_from_db()

    save(queues="mail, report-*", min_priority="200")
    assert (shown["min_priority"], shown["max_priority"]) == ("0", "400")
    assert (row.queues, row.min_priority, row.max_priority) == ("mail, report-*", 200, 400)
    save(max_priority="100")
    assert row.max_priority == 400


def test_revoking_asks_first(admin_client: Client) -> None:
    row, secret = make_token("billing", tenant="acme")
    question = admin_client.post(url_of("apitoken", "change", row.pk), {"_revoke": "1"})
    assert authenticate(secret) is not None

    say_yes(admin_client, question)

    assert authenticate(secret) is None
    change = Change.objects.latest("pk")
    assert (change.actor, change.action) == ("admin", "revoke")


def test_chosen_tokens_are_revoked_after_a_question(admin_client: Client) -> None:
    rows = [make_token(name, tenant="acme")[0] for name in ("a", "b", "c")]
    chosen = [row.pk for row in rows[:2]]
    question = admin_client.post(
        url_of("apitoken", "changelist"),
        {"action": "revoke_selected", "_selected_action": chosen, "index": "0"},
    )
    say_yes(admin_client, question)

    revoked = ApiToken.objects.filter(revoked_at__isnull=False)
    assert sorted(revoked.values_list("pk", flat=True)) == chosen


def test_limit_is_tuned_and_the_scopes_are_not(admin_client: Client) -> None:
    row, _secret = make_token("billing", tenant="acme")
    page = admin_client.get(url_of("apitoken", "change", row.pk))
    values = form_values(page, "requests_per_minute")

    admin_client.post(
        url_of("apitoken", "change", row.pk),
        {**values, "requests_per_minute": "7", "scopes": "tune"},
    )

    row.refresh_from_db()
    assert (row.requests_per_minute, row.scopes) == (7, "read submit")


def test_user_of_some_tenants_makes_no_token_for_others(operator, django_user_model: type) -> None:
    setting = {"VISIBLE_TENANTS": "tests.contrib.api.test_admin.sees_acme"}
    with override_settings(TENANTQUEUE=setting):
        client = operator("add_apitoken", "view_apitoken")
        url = url_of("apitoken", "add")
        for wrong in ({"tenant": "zebra"}, {"tenant": ""}, inputs_of(""), inputs_of(None)):
            client.post(url, {**ADDED, **wrong})
        assert not ApiToken.objects.exists()

        client.post(url, ADDED)

    assert ApiToken.objects.get().tenant == "acme"


def test_date_and_time_have_names_of_their_own_when_they_are_two_inputs(
    admin_client: Client,
) -> None:
    page = admin_client.get(url_of("apitoken", "add")).content.decode()

    for number, label in enumerate(("Date:", "Time:")):
        assert re.search(rf'<input[^>]*name="expires_at_{number}"[^>]*aria-label="{label}"', page)
