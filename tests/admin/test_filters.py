"""Filters of the lists: what Django's templates and those of themes ask of them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import QueryDict
from django.test import Client, RequestFactory

from django_tenantqueue.models import Job
from tests.factories import make_job, make_queue

from .conftest import url_of

pytestmark = pytest.mark.django_db
OURS = [model for model in admin.site._registry if model._meta.app_label.startswith("tenantqueue")]


def changelist_of(model: type[Model], user: User, query: str = "") -> Any:
    request = RequestFactory().get("/")
    request.GET = QueryDict(query)  # type: ignore[assignment]
    request.user = user
    return admin.site._registry[model].get_changelist_instance(request)


@pytest.mark.parametrize("model", OURS)
def test_filter_keeps_djangos_contract_in_every_list(model: type[Model], admin_user: User) -> None:
    changelist = changelist_of(model, admin_user)

    for spec in changelist.filter_specs:
        assert isinstance(spec, admin.ListFilter)
        name = getattr(spec, "field_path", None) or spec.parameter_name
        assert any(name in parameter for parameter in spec.expected_parameters())
        assert spec.used_parameters == {}
        for choice in spec.choices(changelist):
            assert {"selected", "query_string", "display"} <= set(choice)


def test_filters_of_jobs_say_which_parameters_they_use(admin_user: User) -> None:
    queue = make_queue("acme", "mails")
    make_job(queue)

    query = "state=ready&tenant=acme&queue=mails&task=a.b&label=x&worker=5"
    typed = changelist_of(Job, admin_user, query)
    chosen = changelist_of(Job, admin_user, f"queue_id={queue.pk}")

    assert [spec.used_parameters for spec in typed.filter_specs] == [
        {"state": "ready"},
        {"tenant": "acme"},
        {},
        {"queue": "mails"},
        {"task": "a.b"},
        {"label": "x", "worker": "5"},
    ]
    assert [spec.used_parameters for spec in chosen.filter_specs] == [
        {},
        {"queue_id": str(queue.pk)},
        {},
        {},
    ]


def test_input_of_a_filter_belongs_to_a_form_of_the_list(admin_client: Client) -> None:
    make_job(make_queue("acme", "mails"))

    page = admin_client.get(url_of("job", "changelist"), {"state": "ready", "tenant": "acme"})

    text = page.content.decode()
    typed = re.findall(r'<input type="text" form="([^"]+)" name="(\w+)"', text)
    assert [name for _form, name in typed] == ["tenant", "queue", "task"]
    for form, name in typed:
        (found,) = re.findall(rf'<form id="{form}" method="get">(.*?)</form>', text)
        kept = re.findall(r'name="(\w+)" value="([^"]*)"', found)
        assert dict(kept) == {
            key: value for key, value in {"state": "ready", "tenant": "acme"}.items() if key != name
        }
    assert "<form" not in text[text.index('data-filter-title="') : text.rindex("</details>")]
