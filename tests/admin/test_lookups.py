"""Lists answer the lookups that their filters ask for, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth.models import User
from django.db.models import Field, ForeignKey
from django.test import Client, RequestFactory, override_settings

from django_tenantqueue.admin.job_changelist import PARAMETERS
from tests.site import model_of

from .conftest import url_of
from .test_visible_tenants import FLEET, LISTS, Rows, body, fill

NEEDS = "alerts api fireworq retention routing schedules"
pytestmark = pytest.mark.django_db
LOOKUPS = (
    *("", "__exact", "__startswith", "__contains", "__regex", "__gt", "__lt", "__in", "__range"),
    *("__isnull", "__isempty", "__pin__startswith", "__has_key", "__year", "__date__gte"),
)
PLACES = {"before"}
"""Columns that are called as what says where in a list a page begins."""


@pytest.fixture
def rows() -> Iterator[Rows]:
    with override_settings(TENANTQUEUE={}):
        yield fill("acme")


def columns_of(model: str, path: str = "", depth: int = 2) -> Iterator[str]:
    """Yield each column of a model, and those of the rows that it points at."""
    for field in model_of(model)._meta.get_fields():
        if isinstance(field, Field):
            yield f"{path}{field.name}"
            yield f"{path}{field.attname}"
        if isinstance(field, ForeignKey) and depth > 1:
            target = field.related_model._meta.model_name
            yield from columns_of(target, f"{path}{field.name}__", depth - 1)
        elif not isinstance(field, Field):
            yield f"{path}{field.name}__id"


def offered_by(model: str) -> set[str]:
    found = set(PARAMETERS) if model == "job" else set()
    for item in admin.site.get_model_admin(model_of(model)).list_filter:
        if isinstance(item, str):
            found |= {f"{item}__exact", f"{item}__isnull"}
        else:
            found.add(getattr(item, "parameter_name", None) or item.parameter)
    return found


@pytest.mark.parametrize("model", [*LISTS, *FLEET])
def test_list_answers_no_lookup_of_a_column_but_those_of_its_filters(
    admin_user: User, rows: Rows, model: str
) -> None:
    model_admin = admin.site.get_model_admin(model_of(model))
    every = {f"{column}{lookup}" for column in columns_of(model) for lookup in LOOKUPS}
    lookups = every - offered_by(model) - PLACES
    answered = []

    for lookup in sorted(lookups):
        request = RequestFactory().get("/", {lookup: "1"})
        request.user = admin_user
        with suppress(DisallowedModelAdminLookup, IncorrectLookupParameters):
            model_admin.get_changelist_instance(request)
            answered.append(lookup)

    assert len(lookups) > 50
    assert answered == []


@pytest.mark.parametrize("model", [*LISTS, *FLEET])
def test_list_answers_the_lookups_of_its_filters(
    admin_client: Client, rows: Rows, model: str
) -> None:
    listed = url_of(model, "changelist")
    values = {"paused__exact": "1", "enabled__exact": "1", "retired__exact": "0"}

    for name in offered_by(model):
        value = "True" if name.endswith("__isnull") else values.get(name, "error")
        response = admin_client.get(listed, {name: value})

        assert response.status_code == 200, name
        assert name in body(response)
    found = admin_client.get(listed, {"q": "acme", "o": "1", "p": "0"})
    assert found.status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        *("webhook_url__regex=^https", "webhook_secret__startswith=whsec", "tenant__gt=a"),
        *("kind__exact=wait&webhook_secret__startswith=whsec", "q=acme&emails__contains=a"),
    ],
)
def test_secret_of_a_rule_is_no_question_to_its_list(
    admin_client: Client, rows: Rows, query: str
) -> None:
    listed = url_of("alertrule", "changelist")

    answers = [admin_client.get(f"{page}?{query}") for page in (listed, f"{listed}export/csv/")]
    answers.append(
        admin_client.post(
            f"{listed}?{query}", {"action": "disable_selected", "_selected_action": 1, "index": 0}
        )
    )

    assert [answer.status_code for answer in answers] == [400, 400, 400]
