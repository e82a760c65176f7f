"""Routings over the HTTP API: of the token's tenant alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.models import Change
from tests.factories import make_queue
from tests.testapp.tasks import noop

from .conftest import ApiClient

NEEDS = "routing"
pytestmark = pytest.mark.django_db
PATH = "/routings/tests.*"


def test_routing_is_set_listed_and_deleted(api_of: Callable[..., ApiClient]) -> None:
    make_queue("acme", "heavy")
    Routing.objects.create(pattern="x", queue="default")
    api = api_of("acme")

    set_ = api.send("PUT", PATH, {"queue": "heavy"})
    assert (set_.status_code, set_.json()) == (200, {"pattern": "tests.*", "queue": "heavy"})
    assert noop.using(tenant="acme").delay().queue.name == "heavy"
    assert noop.using(tenant="globex").delay().queue.name == "default"
    assert api.get("/routings").json()["items"] == [{"pattern": "tests.*", "queue": "heavy"}]
    assert api_of("globex").get("/routings").json()["items"] == []
    assert api.send("DELETE", PATH).json() == {"pattern": "tests.*", "queue": "heavy"}

    assert api.send("DELETE", PATH).status_code == 404
    assert noop.using(tenant="acme").delay().queue.name == "default"
    own = Change.objects.filter(object_kind="routing")
    assert set(own.values_list("source", "tenant")) == {("api", "acme")}


def test_pattern_may_have_slashes(api_of: Callable[..., ApiClient]) -> None:
    routing = {"pattern": "mail/*", "queue": "default"}

    assert api_of("acme").send("PUT", "/routings/mail%2F*", {"queue": "default"}).json() == routing
    assert api_of("acme").send("DELETE", "/routings/mail/*").json() == routing


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (PATH, {"queue": "missing"}, 422),
        (PATH, {"queue": "old"}, 409),
        (PATH, {"queue": ""}, 422),
        (PATH, {}, 422),
        ("/routings/%20x", {"queue": "default"}, 422),
        ("/routings/%00", {"queue": "default"}, 422),
        (PATH, {"queue": "a\0"}, 422),
    ],
)
def test_routing_that_cannot_be_is_refused(
    api_of: Callable[..., ApiClient], path: str, body: dict[str, str], status: int
) -> None:
    make_queue("acme", "old", retired=True)

    answer = api_of("acme").send("PUT", path, body)

    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert not Routing.objects.exists()


def test_scope_and_tenant_are_needed(api_of: Callable[..., ApiClient]) -> None:
    assert api_of("acme", "read").send("PUT", PATH, {"queue": "default"}).status_code == 403
    assert api_of(None).send("PUT", PATH, {"queue": "default"}).status_code == 422
    assert not Routing.objects.exists()


@pytest.mark.parametrize("tenant", ["", None])
def test_token_reaches_the_routings_of_jobs_without_a_tenant_and_none_of_every_tenant(
    api_of: Callable[..., ApiClient], tenant: str | None
) -> None:
    every = Routing.objects.create(tenant=None, pattern="tests.*", queue="default")
    make_queue("", "heavy")
    api, asked = api_of(tenant), "" if tenant == "" else "?tenant="

    assert api.send("PUT", PATH + asked, {"queue": "heavy"}).status_code == 200
    assert noop.using(tenant="").delay().queue.name == "heavy"
    assert noop.using(tenant="globex").delay().queue.name == "default"
    listed = api.get("/routings" + asked).json()["items"]
    assert listed == [{"pattern": "tests.*", "queue": "heavy"}]
    assert api.send("DELETE", PATH + asked).status_code == 200

    assert api.send("DELETE", PATH + asked).status_code == 404
    assert list(Routing.objects.values_list("pk", "queue")) == [(every.pk, "default")]
