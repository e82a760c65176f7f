"""What a request may do: only a POST with its token changes anything, and nothing is cached."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.test import Client
from django.urls import reverse

import django_tenantqueue
from django_tenantqueue.states import State
from tests.factories import make_duty, make_job, make_worker
from tests.site import models_of_ours

from .conftest import url_of
from .test_visible_tenants import FLEET, LISTS, OURS, Rows, fill

NEEDS = "alerts api fireworq retention routing schedules"
pytestmark = pytest.mark.django_db
STATIC = Path(django_tenantqueue.__file__).parent / "static/django_tenantqueue"


FORMS = ("csv", "jsonl")


@pytest.fixture
def rows(db: None) -> Rows:
    make_worker()
    make_duty()
    return fill(OURS)


def downloads(rows: Rows) -> Iterator[str]:
    """Yield what is saved as a file."""
    for model in (*LISTS, *FLEET):
        for form in FORMS:
            yield url_of(model, "export", form)
    for form in FORMS:
        yield url_of("concurrentjobmonitor", "details", rows.monitor.pk, form)
    ended = make_job(rows.queue, state=State.SUCCESS, result={"rows": 3})
    for part in ("arguments", "result"):
        yield url_of("job", "value", ended.pk, part)


def pages(rows: Rows) -> Iterator[str]:
    yield reverse("admin:app_list", args=["tenantqueue"])
    yield reverse("admin:tenantqueue_overview")
    yield reverse("admin:tenantqueue_failures")
    yield reverse("admin:tenantqueue_failure_group") + f"?task={OURS}.failing&error={OURS}.Error"
    for model in (*LISTS, *FLEET):
        yield url_of(model, "changelist")
    for model in ("tenantqueue", "userlimit", "taskcontrol"):
        yield url_of(model, "add")
    for model, pk in rows.pages.items():
        yield url_of(model, "change", pk)
        yield url_of(model, "history", pk)
    for page in ("live", "again"):
        yield url_of("job", page, make_job(rows.queue).pk)
    yield url_of("concurrentjobmonitor", "live", rows.monitor.pk)


def stored() -> str:
    models = [model for model in models_of_ours() if _has_rows(model)]
    return "\n".join(
        serializers.serialize("json", model.objects.order_by("pk")) for model in models
    )


def _has_rows(model: Any) -> bool:
    return bool(model._meta.managed) and not model._meta.proxy


def test_no_get_changes_anything_whatever_it_asks_for(admin_client: Client, rows: Rows) -> None:
    listed = [*downloads(rows), *pages(rows)]
    asks = "_cancel=1&_retry=1&_run_now=1&_tune=1&_save=1&_apply=1&_retry_failed=1&paused=on"
    before = stored()

    for address in listed:
        response = admin_client.get(address)
        assert response.status_code == 200, address
        if response.streaming:
            list(response.streaming_content)  # type: ignore[attr-defined]
        admin_client.get(f"{address}{'&' if '?' in address else '?'}{asks}")
    for model, pk in rows.pages.items():
        for action in ("pause_selected", "cancel_selected", "retire_selected", "delete_selected"):
            data = {"action": action, "_selected_action": pk, "index": "0", "_apply": "1"}
            admin_client.get(url_of(model, "changelist"), data)
    overview = {"queue": rows.queue.pk, "num_slots": 9, "weight": 9, "paused": "on"}
    admin_client.get(reverse("admin:tenantqueue_overview"), overview)

    assert stored() == before


def test_no_post_without_its_token_changes_anything(rows: Rows) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("ada"))
    listed = [*downloads(rows), *pages(rows)]
    before = stored()

    for address in listed:
        assert client.post(address, {"_apply": "1", "_cancel": "1"}).status_code == 403, address

    assert stored() == before


def test_nothing_that_the_admin_sends_is_kept_in_a_cache(admin_client: Client, rows: Rows) -> None:
    for address in (*downloads(rows), *pages(rows)):
        response = admin_client.get(address)

        assert "no-store" in response["Cache-Control"], address


def test_downloads_are_attachments_whose_type_is_not_guessed(
    admin_client: Client, rows: Rows
) -> None:
    for address in downloads(rows):
        response = admin_client.get(address)

        assert response.status_code == 200
        assert response["Content-Disposition"].startswith("attachment; ")
        assert response["X-Content-Type-Options"] == "nosniff"


def test_scripts_never_make_elements_or_code_of_texts() -> None:
    unsafe = r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
    scripts = sorted(STATIC.glob("*.js"))

    assert len(scripts) > 3
    for script in scripts:
        assert not re.search(unsafe, script.read_text()), script.name
