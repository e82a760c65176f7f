"""Links to statuses: who can open them, until when, and what they say of an error."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.template import Context, Template
from django.test import Client, RequestFactory, override_settings
from django.utils import timezone

from django_tenantqueue.exceptions import InvalidOption, JobNotFound
from django_tenantqueue.link_tokens import sign_job_id
from django_tenantqueue.models import Change, Job, StatusLinkRevocation
from django_tenantqueue.operations import status_links as operations
from django_tenantqueue.operations.status_links import revoke_status_links
from tests.factories import made_changes, make_job, make_queue
from tests.testapp.tasks import noop

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.web.urls")]
STATUSES = "/jobs/status/"


def token_of(url: str) -> str:
    return url.split("/")[2]


def opens(client: Client, *urls: str) -> list[bool]:
    """Whether links open, each alone, which must be the same as all in one request."""
    alone = [client.get(url).status_code == 200 for url in urls]
    entries = client.post(STATUSES, {"token": [token_of(url) for url in urls]}).json()["jobs"]
    assert [entry["job"] is not None for entry in entries] == alone
    return alone


def make_user(name: str) -> Any:
    return get_user_model().objects.create_user(name)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Move the clock that signs links."""
    import time

    now = time.time()

    def move(seconds: float) -> None:
        monkeypatch.setattr("django.core.signing.time.time", lambda: now + seconds)

    return move


# bound


def test_link_of_a_user_opens_for_this_user_alone(client: Client) -> None:
    eve, bob = make_user("eve"), make_user("bob")
    url = noop.delay().status_url_for(user=eve)

    assert opens(client, url) == [False]
    client.force_login(bob)
    assert opens(client, url) == [False]
    client.force_login(eve)
    assert opens(client, url, noop.delay().status_url_for(user=bob)) == [True, False]
    eve.is_active = False
    eve.save()
    assert opens(client, url) == [False]
    backend = "django.contrib.auth.backends.AllowAllUsersModelBackend"
    with override_settings(AUTHENTICATION_BACKENDS=[backend]):
        client.force_login(eve, backend)
        assert opens(client, url) == [False]


def test_link_of_a_session_opens_in_this_session_alone(client: Client) -> None:
    session = client.session
    session["cart"] = 1
    session.save()
    url = noop.delay().status_url_for(session=session)

    assert opens(client, url) == [True]
    assert opens(Client(), url) == [False]
    other = Client()
    other.session.save()
    assert opens(other, url) == [False]
    session.delete()  # the cookie is still there
    assert opens(client, url) == [False]


def test_new_session_gets_a_key_and_keeps_its_values() -> None:
    client = Client()
    request = RequestFactory().get("/")
    from django.contrib.sessions.backends.db import SessionStore

    request.session = SessionStore()
    request.session["cart"] = 1
    url = noop.delay().status_url_for(session=request.session)

    client.cookies["sessionid"] = request.session.session_key
    assert request.session["cart"] == 1
    assert opens(client, url) == [True]


def test_bound_link_says_nothing_of_its_holder_and_cannot_be_made_free(client: Client) -> None:
    eve = make_user("eve")
    job = noop.delay()
    token = token_of(job.status_url_for(user=eve))
    client.force_login(eve)

    assert token.startswith(f"{job.pk}u:")
    for forged in (token.replace("u:", ":", 1), token.replace("u:", "s:", 1)):
        assert opens(client, f"/jobs/{forged}/status/") == [False]
    session = client.session
    assert session.session_key not in token_of(job.status_url_for(session=session))


@pytest.mark.parametrize("bound", [{}, {"user": 1, "session": 2}, {"user": AnonymousUser()}])
def test_link_is_bound_to_one_thing_that_exists(bound: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        noop.delay().status_url_for(**bound)


def test_links_that_are_not_bound_read_no_session_and_no_user(
    client: Client, django_assert_num_queries: Any
) -> None:
    client.force_login(make_user("eve"))
    job = make_job()

    with django_assert_num_queries(2):  # the job and the revocations
        client.get(f"/jobs/{sign_job_id(job.pk)}/status/")


@pytest.mark.parametrize("bind", ["user", "session"])
def test_tag_binds_its_jobs_to_the_one_who_sees_the_page(client: Client, bind: str) -> None:
    eve = make_user("eve")
    client.force_login(eve)
    request = RequestFactory().get("/")
    request.user, request.session = eve, client.session
    page = Template(
        "{% load tenantqueue %}{% job_progress job bind=bind %}{% jobs_progress jobs bind=bind %}"
    ).render(
        Context({"job": noop.delay(), "jobs": [noop.delay()], "bind": bind, "request": request})
    )
    tokens = [part.partition('"')[0] for part in page.split('data-token="')[1:]]
    urls = [f"/jobs/{token}/status/" for token in tokens]

    assert len(urls) == 2
    assert opens(client, *urls) == [True, True]
    assert opens(Client(), *urls) == [False, False]


def test_tag_says_what_it_can_be_bound_to() -> None:
    page = Template("{% load tenantqueue %}{% job_progress job bind='cookie' %}")
    with pytest.raises(ImproperlyConfigured, match="must be 'user' or 'session'"):
        page.render(Context({"job": noop.delay(), "request": RequestFactory().get("/")}))
    with pytest.raises(ImproperlyConfigured, match="rendered with its request"):
        page.render(Context({"job": noop.delay()}))


# revoked


def test_links_of_a_job_are_revoked_and_new_ones_open(
    client: Client, later: Callable[[float], None]
) -> None:
    ours, other = noop.using(tenant="acme").delay(), noop.using(tenant="acme").delay()
    old = ours.status_url

    revoke_status_links(job=ours)
    assert opens(client, old, other.status_url) == [False, True]
    later(2)
    assert opens(client, ours.status_url) == [True]
    assert opens(client, old) == [False]


@pytest.mark.parametrize(
    ("whose", "opened"),
    [
        ({}, [False, False, False]),
        ({"tenant": "acme"}, [False, False, True]),
        ({"user": "7"}, [False, True, False]),
        ({"user": "7", "tenant": "acme"}, [False, True, True]),
        ({"tenant": "none"}, [True, True, True]),
        ({"user": "none"}, [True, True, True]),
    ],
)
def test_links_of_users_and_tenants_are_revoked(
    client: Client, whose: dict[str, str], opened: list[bool]
) -> None:
    urls = [
        noop.using(tenant=tenant, created_by=user).delay().status_url
        for tenant, user in (("acme", "7"), ("acme", "8"), ("globex", "7"))
    ]

    revoke_status_links(**whose)

    assert opens(client, *urls) == opened


def test_links_that_are_bound_to_a_user_are_revoked_with_the_user(client: Client) -> None:
    eve = make_user("eve")
    client.force_login(eve)
    job = noop.using(created_by="someone").delay()
    urls = job.status_url_for(user=eve), job.status_url

    revoke_status_links(user=eve)

    assert opens(client, *urls) == [False, True]


def test_links_made_after_the_given_time_stay(
    client: Client, later: Callable[[float], None]
) -> None:
    job = noop.delay()
    later(-7200)
    old = job.status_url
    later(0)
    new = job.status_url

    revoke_status_links(job=job, before=timezone.now() - timedelta(hours=1))
    revoke_status_links(job=job, before=timezone.now() - timedelta(hours=3))  # takes nothing back

    assert opens(client, old, new) == [False, True]
    assert StatusLinkRevocation.objects.count() == 1


def test_revocation_is_recorded_with_its_tenant() -> None:
    job = make_job(make_queue("acme"))

    revoke_status_links(job=job)

    (change,) = Change.objects.all()
    assert (change.action, change.object_kind) == ("revoke", "status_links")
    assert (change.tenant, change.object_label) == ("acme", f"acme / #{job.pk}")
    assert list(made_changes()[0][2]) == ["before"]


def test_revocations_are_forgotten_long_after_their_links(monkeypatch: Any) -> None:
    for days in (69, 71):
        before = timezone.now() - timedelta(days=days)
        StatusLinkRevocation.objects.create(user=str(days), before=before)

    revoke_status_links(tenant="acme")

    assert set(StatusLinkRevocation.objects.values_list("user", flat=True)) == {"", "69"}
    assert operations.KEPT == 10


def test_wrong_revocations_are_errors() -> None:
    with pytest.raises(InvalidOption):
        revoke_status_links(before=timezone.now() + timedelta(hours=1))
    with pytest.raises(InvalidOption):
        revoke_status_links(before=timezone.now().replace(tzinfo=None))
    with pytest.raises(JobNotFound):
        revoke_status_links(job=987_654_321)
    assert not StatusLinkRevocation.objects.exists()


def test_statement_count_does_not_grow_with_the_links(
    client: Client, django_assert_num_queries: Any
) -> None:
    jobs = [noop.using(tenant=f"t{number}").delay() for number in range(50)]
    tokens = [token_of(job.status_url) for job in jobs]
    revoke_status_links(tenant="t7")

    with django_assert_num_queries(3):
        found = client.post(STATUSES, {"token": tokens}).json()["jobs"]

    assert [number for number, entry in enumerate(found) if entry["job"] is None] == [7]


def test_command_revokes_links(client: Client) -> None:
    job = noop.using(tenant="acme").delay()
    url = job.status_url
    out = io.StringIO()

    call_command("revokelinks", tenant="acme", before="2020-01-01T00:00", stdout=out)
    assert opens(client, url) == [True]
    call_command("revokelinks", job=job.pk, stdout=out)

    assert opens(client, url) == [False]
    assert out.getvalue() == "revoked\nrevoked\n"
    assert set(Change.objects.values_list("source", flat=True)) == {"command"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "or else --all"),
        ({"all": True, "tenant": "x"}, "or else --all"),
        ({"tenant": "x", "before": "soon"}, "'soon' is no time"),
        ({"tenant": "x", "before": "2026-13-01T00:00"}, "is no time"),
        ({"tenant": "x" * 201}, "at most 200"),
        ({"job": 987654321}, "there is no job"),
    ],
)
def test_wrong_command_is_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("revokelinks", **options)


# errors


def failed(state: str = "error") -> Job:
    error = {
        "at": "2026-01-01T00:00:00+00:00",
        "attempt": 1,
        "class": "ValueError",
        "message": "row 7 of acme",
        "traceback": "Traceback of the worker",
    }
    return make_job(state=state, errors=[error])


@override_settings(TENANTQUEUE={"STATUS_ERROR": "message"})
def test_status_says_the_message_of_the_exception_when_the_setting_asks_for_it(
    client: Client,
) -> None:
    answer = client.get(failed().status_url)

    assert answer.json()["error"] == "row 7 of acme"
    assert "Traceback" not in answer.content.decode()
    assert "ValueError" not in answer.content.decode()


def test_status_says_no_message_without_the_setting(client: Client) -> None:
    page = Template("{% load tenantqueue %}{% job_progress job errors=True %}")

    one = client.get(failed().status_url)
    shown = page.render(Context({"job": failed()}))
    cancelled = client.get(failed(state="cancelled").status_url)

    assert one.json()["error"] == "Something went wrong."
    assert "Something went wrong." in shown
    assert "row 7" not in one.content.decode() + shown + cancelled.content.decode()
    assert cancelled.json()["error"] is None


@override_settings(TENANTQUEUE={"STATUS_ERROR": "It failed. We are looking into it."})
def test_status_says_a_public_text_when_the_setting_is_one(client: Client) -> None:
    job = failed()
    page = Template("{% load tenantqueue %}{% job_progress job errors=True %}")

    one = client.get(job.status_url)
    many = client.post(STATUSES, {"token": token_of(job.status_url)})
    shown = page.render(Context({"job": job}))

    assert one.json()["error"] == "It failed. We are looking into it."
    assert many.json()["jobs"][0]["job"]["error"] == "It failed. We are looking into it."
    for text in (one.content.decode(), many.content.decode(), shown):
        assert "row 7" not in text
        assert "ValueError" not in text
    assert "We are looking into it." in shown
    assert client.get(make_job(state="success").status_url).json()["error"] is None
