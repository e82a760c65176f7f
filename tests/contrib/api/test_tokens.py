from __future__ import annotations

from datetime import timedelta
from unittest.mock import patch

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from django_tenantqueue.contrib.api import tokens
from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.models import ApiToken
from django_tenantqueue.contrib.api.tokens import allowed, authenticate, revoke_tokens, tune_token
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import Change
from django_tenantqueue.operations.actor import acting_as
from django_tenantqueue.operations.erasure import close_tenant

pytestmark = pytest.mark.django_db


def test_only_the_hash_is_stored_when_a_token_is_made():
    row, secret = make_token("billing", tenant="acme")

    stored = ApiToken.objects.get(pk=row.pk)
    values = " ".join(str(value) for value in vars(stored).values())
    assert secret not in values
    assert secret.startswith("tq_")
    assert len(secret) > 40
    assert stored.start == secret[:11]
    assert len(stored.digest) == 64
    assert secret not in str(Change.objects.values().get())


def test_two_tokens_differ():
    assert make_token("a", tenant="acme")[1] != make_token("b", tenant="acme")[1]


def test_making_is_recorded_with_its_actor():
    with acting_as("root", Change.Source.COMMAND):
        row, _secret = make_token("billing", tenant="acme", scopes=["tune", "read"])

    change = Change.objects.get()
    assert (change.actor, change.source, change.action) == ("root", "command", "add")
    assert (change.object_kind, change.object_ids, change.tenant) == ("api_token", [row.pk], "acme")
    assert change.after["scopes"] == "read tune"
    assert "digest" not in change.after
    assert row.created_by == "root"


def test_authenticate_returns_the_token_whose_secret_is_given():
    row, secret = make_token("billing", tenant="acme")
    make_token("other", tenant="zebra")

    found = authenticate(secret)

    assert found is not None
    assert found.pk == row.pk


@pytest.mark.parametrize(
    "wrong", ["", "tq_", "x", "tq_" + "A" * 43, "tq_\x00", "tq_\ud800", "tq_" + "é" * 40]
)
def test_authenticate_returns_none_when_there_is_no_such_token(wrong: str):
    make_token("billing", tenant="acme")

    assert authenticate(wrong) is None


def test_authenticate_returns_none_once_a_token_is_revoked():
    row, secret = make_token("billing", tenant="acme")
    assert authenticate(secret) is not None

    assert revoke_tokens(row.pk)

    assert authenticate(secret) is None
    assert not revoke_tokens(row.pk)
    change = Change.objects.latest("pk")
    assert (change.action, change.object_kind) == ("revoke", "api_token")
    assert change.before == {"revoked_at": None}


def test_revocation_by_another_process_acts_when_a_second_has_passed():
    row, secret = make_token("billing", tenant="acme")
    assert authenticate(secret) is not None
    ApiToken.objects.filter(pk=row.pk).update(revoked_at=timezone.now())

    with patch.object(tokens.time, "monotonic", return_value=tokens.time.monotonic() + 1.01):
        assert authenticate(secret) is None


def test_remembered_token_costs_no_statement(django_assert_num_queries):
    _row, secret = make_token("billing", tenant="acme")
    authenticate(secret)

    with django_assert_num_queries(0):
        assert authenticate(secret) is not None


def test_authenticate_returns_none_once_a_token_has_expired():
    now = timezone.now()
    _row, secret = make_token("billing", tenant="acme", expires_at=now + timedelta(hours=1))
    assert authenticate(secret) is not None

    with patch.object(tokens.timezone, "now", return_value=now + timedelta(hours=1)):
        assert authenticate(secret) is None


def test_new_token_is_refused_when_it_has_expired_already():
    with pytest.raises(ValidationError, match="It is in the past"):
        make_token("billing", expires_at=timezone.now() - timedelta(minutes=1))


def test_new_token_is_refused_when_the_tenant_has_a_valid_one_of_its_name():
    make_token("billing", tenant="acme")
    make_token("billing", tenant="zebra")

    with pytest.raises(ValidationError, match="API token with this Tenant and Name already exists"):
        make_token("billing", tenant="acme")


def test_use_is_noted_at_most_once_a_minute():
    row, secret = make_token("billing", tenant="acme")
    authenticate(secret)
    first = ApiToken.objects.get(pk=row.pk).last_used_at
    assert first is not None

    tokens._known.clear()
    authenticate(secret)
    assert ApiToken.objects.get(pk=row.pk).last_used_at == first

    ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
    tokens._known.clear()
    authenticate(secret)
    assert ApiToken.objects.get(pk=row.pk).last_used_at > first - timedelta(minutes=1)


@pytest.mark.parametrize(
    ("tenant", "scope", "asked", "is_allowed"),
    [
        ("acme", "read", "acme", True),
        ("acme", "read", "zebra", False),
        ("acme", "tune", "acme", False),
        ("acme", "http", "acme", False),
        ("", "read", "", True),
        ("", "read", "acme", False),
        (None, "read", "acme", True),
        (None, "read", "", True),
        (None, "tune", "acme", False),
    ],
)
def test_allowed_asks_for_scope_and_tenant(
    tenant: str | None, scope: str, asked: str, is_allowed: bool
):
    row, _secret = make_token("t", tenant=tenant, scopes=["read"])

    assert allowed(row, scope, asked) is is_allowed


@pytest.mark.parametrize(
    "columns",
    [
        {"scopes": []},
        {"scopes": ["write"]},
        {"scopes": ["read write"]},
        {"requests_per_minute": 0},
        {"priorities": (2, 1)},
        {"queues": ["q" * 1001]},
        {"tenant": "x" * 201},
    ],
)
def test_wrong_values_are_refused(columns):
    with pytest.raises(ValidationError):
        make_token("billing", **columns)


def test_name_is_free_again_once_its_token_is_revoked():
    row, _secret = make_token("billing", tenant="acme")
    with pytest.raises(ValidationError):
        make_token("billing", tenant="acme")

    revoke_tokens(row.pk)

    assert make_token("billing", tenant="acme")[0].pk != row.pk


def test_database_refuses_unknown_scopes():
    with pytest.raises(IntegrityError), transaction.atomic():
        ApiToken.objects.create(name="n", scopes="admin", digest="d")


def test_tuning_is_recorded_and_limited_to_some_columns():
    row, secret = make_token("billing", tenant="acme")
    authenticate(secret)

    tune_token(row.pk, requests_per_minute=7)

    found = authenticate(secret)
    assert found is not None
    assert found.requests_per_minute == 7
    assert Change.objects.latest("pk").after == {"requests_per_minute": 7}
    with pytest.raises(InvalidOption):
        tune_token(row.pk, scopes="tune")


def test_tokens_of_a_tenant_are_revoked_when_it_is_closed():
    _row, secret = make_token("billing", tenant="acme")
    _other, others = make_token("billing", tenant="zebra")

    close_tenant("default", "acme")

    tokens._known.clear()
    assert authenticate(secret) is None
    assert authenticate(others) is not None


@pytest.mark.parametrize("number", [101, "many"])
def test_priority_is_refused_when_it_is_above_the_last_or_no_number(number):
    token, _ = make_token("billing", tenant="acme", priorities=(0, 100))

    with pytest.raises(ValidationError):
        tokens.tune_token(token.pk, min_priority=number)

    token.refresh_from_db()
    assert token.min_priority == 0
