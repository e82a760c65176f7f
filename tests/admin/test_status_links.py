"""Links to statuses are revoked in the admin."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from django_tenantqueue.link_tokens import sign_job_id
from django_tenantqueue.models import Change, StatusLinkRevocation
from django_tenantqueue.operations.status_links import revoke_status_links
from django_tenantqueue.status.open_links import open_links
from tests.factories import make_job, make_queue

from .conftest import text_of, url_of

pytestmark = pytest.mark.django_db
ADD = url_of("statuslinkrevocation", "add")
NOTHING_GIVEN = {"tenant": "", "job_id": "", "user": "", "before_0": "", "before_1": ""}
LIMITED = {"VISIBLE_TENANTS": "tests.admin.test_visible_tenants.sees_ours"}


def opens(token: str) -> bool:
    return bool(open_links("default", [token], lambda bound: None))


def test_links_of_a_job_are_revoked_from_its_page(admin_client: Client) -> None:
    job, other = make_job(make_queue("acme")), make_job(make_queue("globex"))
    page = admin_client.get(url_of("job", "change", job.pk)).content.decode()
    assert f"{ADD}?job_id={job.pk}&amp;tenant=acme" in page
    form = admin_client.get(f"{ADD}?job_id={job.pk}&tenant=acme").context["adminform"].form
    assert form["job_id"].value() == str(job.pk)
    link, others = sign_job_id(job.pk), sign_job_id(other.pk)
    assert opens(link)

    given = {**NOTHING_GIVEN, "job_id": job.pk, "tenant": "acme"}
    answer = admin_client.post(ADD, given, follow=True)

    assert "was added successfully" in text_of(answer)
    assert not opens(link)
    assert opens(others)
    assert "revoked, if made before" in text_of(admin_client.get(url_of("job", "change", job.pk)))
    change = Change.objects.get()
    assert (change.actor, change.source, change.action) == ("admin", "admin", "revoke")


@pytest.mark.parametrize(
    ("address", "name"), [(ADD, "before"), (url_of("apitoken", "add"), "expires_at")]
)
def test_date_and_time_have_names_of_their_own_when_they_are_two_inputs(
    admin_client: Client, address: str, name: str
) -> None:
    page = admin_client.get(address).content.decode()

    for number, label in enumerate(("Date:", "Time:")):
        assert re.search(rf'<input[^>]*name="{name}_{number}"[^>]*aria-label="{label}"', page)


def test_second_revocation_moves_the_time_of_the_first(admin_client: Client) -> None:
    earlier = timezone.now() - timedelta(hours=1)
    first = revoke_status_links(tenant="acme", before=earlier)

    admin_client.post(ADD, {**NOTHING_GIVEN, "tenant": "acme"})

    row = StatusLinkRevocation.objects.get()
    assert row.pk == first.pk
    assert row.before > earlier


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"job_id": "987654321"}, "There is no job 987654321."),
        ({"before_0": "2999-01-01", "before_1": "00:00"}, "must not be in the future"),
        ({"tenant": "globex", "job_id": "of acme"}, "is not of this tenant"),
        ({"job_id": "0"}, "greater than or equal to 1"),
        ({"job_id": str(10**30)}, "less than or equal to"),
        ({"job_id": "without a queue"}, "There is no job"),
    ],
)
def test_wrong_revocation_is_refused(
    admin_client: Client, given: dict[str, Any], text: str
) -> None:
    job = make_job(make_queue("acme"))
    ids = {"of acme": job.pk, "without a queue": make_job(queue_id=0).pk}
    named = {key: ids.get(value, value) for key, value in given.items()}

    answer = admin_client.post(ADD, {**NOTHING_GIVEN, **named})

    assert text in text_of(answer)
    assert not StatusLinkRevocation.objects.exists()


def test_page_of_a_job_leads_nowhere_without_the_permission(
    operator: Callable[..., Client],
) -> None:
    job = make_job(make_queue("acme"))

    page = text_of(operator("view_job").get(url_of("job", "change", job.pk)))

    assert "links to its status" not in page


def test_revocation_is_neither_changed_nor_deleted(admin_client: Client) -> None:
    row = revoke_status_links(tenant="acme")
    page = url_of("statuslinkrevocation", "change", row.pk)

    assert admin_client.get(page).status_code == 200
    assert admin_client.post(page, {**NOTHING_GIVEN, "tenant": "globex"}).status_code == 403
    assert admin_client.post(page.replace("change", "delete"), {"post": "yes"}).status_code == 403

    assert StatusLinkRevocation.objects.get().tenant == "acme"


def test_user_of_a_tenant_revokes_links_of_this_tenant_alone(
    operator: Callable[..., Client],
) -> None:
    ours, theirs = make_job(make_queue("acme")), make_job(make_queue("zebra"))
    client = operator("view_statuslinkrevocation", "add_statuslinkrevocation")

    with override_settings(TENANTQUEUE=LIMITED):
        for given in ({}, {"tenant": "zebra"}, {"job_id": theirs.pk}, {"user": "7"}):
            client.post(ADD, {**NOTHING_GIVEN, **given})
        assert not StatusLinkRevocation.objects.exists()
        client.post(ADD, {**NOTHING_GIVEN, "job_id": ours.pk})

    assert StatusLinkRevocation.objects.get().job_id == ours.pk
    assert opens(sign_job_id(theirs.pk))
