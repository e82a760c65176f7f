from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from django_tenantqueue.contrib.api.tokens import authenticate
from django_tenantqueue.models import Change

pytestmark = pytest.mark.django_db


def run(*args: str) -> str:
    output = StringIO()
    call_command("tenantqueue", "token", "create", *args, stdout=output, skip_checks=True)
    return output.getvalue()


def test_token_is_printed_when_it_is_made() -> None:
    token = authenticate(run("billing", "--tenant", "acme", "--scope", "tune").strip())

    assert token is not None
    assert (token.tenant, token.scopes, token.expires_at) == ("acme", "tune", None)
    assert Change.objects.get().source == "command"


def test_token_is_for_the_queues_and_priorities_that_are_named() -> None:
    options = ("--queue", "mail", "--queue", "report-*", "--priorities", "100", "300")

    token = authenticate(run("billing", "--tenant", "acme", *options).strip())

    assert token is not None
    assert (token.queues, token.min_priority, token.max_priority) == ("mail, report-*", 100, 300)


def test_json_has_its_id_too() -> None:
    made = json.loads(run("gateway", "--all-tenants", "--days", "3", "--format=json"))

    token = authenticate(made["token"])
    assert token is not None
    assert (token.pk, token.tenant, token.scopes) == (made["id"], None, "read submit")
    assert token.expires_at is not None


@pytest.mark.parametrize(
    "wrong",
    [
        ("x",),
        ("x", "--tenant", "a", "--all-tenants"),
        ("", "--tenant", "a"),
        ("x", "--tenant", "a", "--days", "0"),
    ],
)
def test_wrong_options_are_refused(wrong: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        run(*wrong)
