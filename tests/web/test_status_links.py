"""Links to statuses: who can open them, until when, and what they say of an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.template import Context, Template
from django.test import Client, RequestFactory, override_settings

from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.link_tokens import read_job_token, sign_job_id
from django_tenantqueue.models import Job
from tests.factories import make_job
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
    url = noop.delay().status_url_for(browser_session=session)

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
    url = noop.delay().status_url_for(browser_session=request.session)

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
    assert session.session_key not in token_of(job.status_url_for(browser_session=session))


@pytest.mark.parametrize(
    "bound", [{}, {"user": 1, "browser_session": 2}, {"user": AnonymousUser()}]
)
def test_link_is_bound_to_one_thing_that_exists(bound: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        noop.delay().status_url_for(**bound)


def test_links_that_are_not_bound_read_no_session_and_no_user(
    client: Client, django_assert_num_queries: Any
) -> None:
    client.force_login(make_user("eve"))
    job = make_job()

    with django_assert_num_queries(1):  # the job
        client.get(f"/jobs/{sign_job_id(job.pk)}/status/")


def urls_of_tags(client: Client, user: Any, bind: str) -> list[str]:
    """Render both tags as the user sees them; return the addresses of their jobs."""
    request = RequestFactory().get("/")
    request.user, request.session = user, client.session
    page = Template(
        "{% load tenantqueue %}{% job_progress job bind=bind %}{% jobs_progress jobs bind=bind %}"
    ).render(
        Context({"job": noop.delay(), "jobs": [noop.delay()], "bind": bind, "request": request})
    )
    tokens = [part.partition('"')[0] for part in page.split('data-token="')[1:]]
    return [f"/jobs/{token}/status/" for token in tokens]


@pytest.mark.parametrize("bind", ["user", "browser"])
def test_tag_binds_its_jobs_to_the_one_who_sees_the_page(client: Client, bind: str) -> None:
    eve = make_user("eve")
    client.force_login(eve)
    urls = urls_of_tags(client, eve, bind)

    assert len(urls) == 2
    assert opens(client, *urls) == [True, True]
    assert opens(Client(), *urls) == [False, False]


def test_tag_says_what_it_can_be_bound_to() -> None:
    page = Template("{% load tenantqueue %}{% job_progress job bind='cookie' %}")
    with pytest.raises(ImproperlyConfigured, match="must be 'user' or 'browser'"):
        page.render(Context({"job": noop.delay(), "request": RequestFactory().get("/")}))
    with pytest.raises(ImproperlyConfigured, match="rendered with its request"):
        page.render(Context({"job": noop.delay()}))


# ended


def with_salt(salt: str) -> override_settings:
    return override_settings(TENANTQUEUE={"STATUS_SALT": salt})


def test_links_of_every_kind_end_when_the_salt_is_changed(client: Client) -> None:
    eve, job = make_user("eve"), noop.delay()
    client.force_login(eve)
    session = client.session

    def make_links() -> list[str]:
        bound = [job.status_url_for(user=eve), job.status_url_for(browser_session=session)]
        return [job.status_url, *bound]

    default = make_links()
    with with_salt("2026-11"):
        assert opens(client, *default) == [False] * 3
        first = make_links()
        assert opens(client, *first) == [True] * 3
    with with_salt("2026-12"):
        assert opens(client, *default, *first) == [False] * 6
    assert opens(client, *default, *first) == [True] * 3 + [False] * 3


def test_link_of_an_earlier_salt_answers_like_a_forged_one_and_an_old_one(
    client: Client, later: Callable[[float], None]
) -> None:
    url = noop.delay().status_url

    def answers(path: str) -> tuple[int, bytes, Any]:
        one = client.get(path)
        many = client.post(STATUSES, {"token": token_of(path)})
        return one.status_code, one.content, many.json()["jobs"][0]["error"]

    forged = answers("/jobs/forged/status/")
    with with_salt("2026-11"):
        assert answers(url) == forged
    later(8 * 86400)
    assert answers(url) == forged
    assert forged[0] == 404


@pytest.mark.parametrize("bind", ["", "user", "browser"])
def test_links_of_the_tags_end_when_the_salt_is_changed(client: Client, bind: str) -> None:
    eve = make_user("eve")
    client.force_login(eve)
    urls = urls_of_tags(client, eve, bind)

    with with_salt("2026-11"):
        assert opens(client, *urls) == [False, False]
        assert opens(client, *urls_of_tags(client, eve, bind)) == [True, True]


def test_salt_is_not_taken_for_a_part_of_the_key() -> None:
    with with_salt("a"):
        token = sign_job_id(1, "u", "b")

    for salt, key in (("a.b", ""), ("", "a.b"), ("", "ab"), ("ab", "")):
        with with_salt(salt):
            assert read_job_token(token, lambda bound, key=key: key) is None
    with with_salt("a"):
        assert read_job_token(token, lambda bound: "b") == 1


def test_link_ends_with_its_job(client: Client) -> None:
    job = make_job(state="success")
    url = job.status_url
    assert opens(client, url) == [True]

    Job.objects.filter(pk=job.pk).delete()

    assert opens(client, url) == [False]


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


@override_settings(TENANTQUEUE={"STATUS_ERROR": "{message}"})
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
