"""What a feature adds to the problems of the fleet, and to the first page."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Model
from django.http import HttpRequest
from django.test import Client

from django_tenantqueue.features import Condition, Feature, Problem, Severity
from django_tenantqueue.models import Job
from django_tenantqueue.status.conditions import Look
from django_tenantqueue.status.conditions.system_checks import check_conditions
from django_tenantqueue.status.fleet_report import read_report, read_report_of
from tests.admin.conftest import operator, url_of
from tests.factories import make_job

__all__ = ["operator"]
pytestmark = pytest.mark.django_db
LATE = Problem(
    *("delivery_late", "deliveries are late: 17, 18", "deliveries", "state=ready"),
    remedy="Send a second van.",
)
HOME = "/admin/tenantqueue/"


class Deliveries(Feature):
    """An app with a problem of its own, which its own list shows."""

    asked: list[Look]

    def conditions(self) -> Iterable[Condition]:
        self.asked = []
        late = Condition(
            LATE.code,
            Severity.PEOPLE,
            fleet="deliveries are late: %(names)s",
            remedy=LATE.remedy,
            where=LATE.where,
            filter=LATE.filter,
            find=self._find,
            of_tenants=True,
        )
        early = Condition("early", Severity.TIME, fleet="too early", find=lambda look: [{}])
        return [late, early]

    def _find(self, look: Look) -> Iterator[Mapping[str, Any]]:
        self.asked.append(look)
        yield {"names": ["17", "18"]}

    def home_problems(self, request: HttpRequest) -> Iterable[Mapping[str, str]]:
        return [{"text": f"a note for {request.user}", "url": "/notes/"}]

    def lists(self) -> Mapping[str, type[Model]]:
        return {LATE.where: Job}


@pytest.fixture
def deliveries(install: Callable[[Feature], None]) -> Deliveries:
    feature = Deliveries()
    install(feature)
    return feature


def test_report_has_the_problems_of_a_feature(deliveries: Deliveries) -> None:
    found = read_report("default", jobs=0).problems

    assert LATE in found
    assert "too early" in [problem.text for problem in found]
    ((using, tenants),) = ((look.using, look.tenants) for look in deliveries.asked)
    assert (using, tenants) == ("default", None)


def test_report_of_some_tenants_asks_for_these_alone(deliveries: Deliveries) -> None:
    assert list(read_report_of("default", ["acme"], ()).problems) == [LATE]
    assert [look.tenants for look in deliveries.asked] == [["acme"]]


def test_command_prints_the_problems_of_a_feature(deliveries: Deliveries) -> None:
    out = io.StringIO()
    call_command("tenantqueue", "status", stdout=out, no_color=True)

    assert "! deliveries are late: 17, 18\n" in out.getvalue()


def test_first_page_links_a_problem_to_the_list_of_its_feature(
    deliveries: Deliveries, admin_client: Client
) -> None:
    content = admin_client.get(HOME).content.decode()

    assert f'{url_of("job", "changelist")}?state=ready">Deliveries are late' in content


def test_first_page_begins_with_the_problems_of_a_feature_for_its_user(
    deliveries: Deliveries, admin_client: Client
) -> None:
    content = admin_client.get(HOME).content.decode()

    assert content.index('/notes/">a note for admin') < content.index("No worker runs")


def test_link_is_for_those_who_may_view_the_list(
    deliveries: Deliveries, operator: Callable[..., Client]
) -> None:
    content = operator("view_tenantqueue").get(HOME).content.decode()

    assert "Deliveries are late" in content
    assert '?state=ready"' not in content


def fail(*args: object) -> Any:
    raise RuntimeError("of tenant acme")


def fail_in_sql(*args: object) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT no_such_column")


class Broken(Feature):
    """An app that fails wherever it is asked."""

    def __init__(self, failing: Callable[..., Any]) -> None:
        self.failing = failing

    def conditions(self) -> Iterable[Condition]:
        yield Condition(
            "broken", Severity.PEOPLE, title="broken", find=self.failing, of_tenants=True
        )

    def home_problems(self, request: HttpRequest) -> Any:
        yield {"text": "a note", "url": ""}
        self.failing()

    def admin_panels(self, request: HttpRequest) -> Any:
        return self.failing()

    def job_facts(self, request: HttpRequest, job: Job) -> Any:
        return self.failing()


@pytest.mark.parametrize("failing", [fail, fail_in_sql])
def test_failing_app_leaves_the_rest_of_the_pages(
    failing: Callable[..., Any],
    install: Callable[[Feature], None],
    admin_client: Client,
    caplog: pytest.LogCaptureFixture,
) -> None:
    install(Broken(failing))
    job = make_job()

    home = admin_client.get(HOME).content.decode()
    page = admin_client.get(url_of("job", "change", job.pk))

    assert "Broken: error (" in home
    assert "of tenant acme" not in home
    assert "No worker runs" in home
    assert job.task in page.content.decode()
    named = {f"{__name__}.Broken.{name} failed" for name in ("admin_panels", "job_facts")}
    assert {*named, "checking condition broken failed"} <= set(caplog.messages)


@pytest.mark.parametrize("failing", [fail, fail_in_sql])
def test_command_prints_that_a_condition_cannot_be_looked_for(
    failing: Callable[..., Any], install: Callable[[Feature], None]
) -> None:
    install(Broken(failing))
    out = io.StringIO()

    call_command("tenantqueue", "status", stdout=out, no_color=True)

    assert "! broken: error (" in out.getvalue()
    assert "! no worker runs" in out.getvalue()


class Nowhere(Feature):
    def conditions(self) -> Iterable[Condition]:
        yield Condition("lost", Severity.PEOPLE, fleet="lost", where="x", find=lambda look: [{}])


def test_first_page_shows_a_problem_whose_list_is_unknown(
    install: Callable[[Feature], None], admin_client: Client
) -> None:
    install(Nowhere())

    assert "<li>Lost <a" in admin_client.get(HOME).content.decode()


class Named(Feature):
    def __init__(self, *codes: str) -> None:
        self.codes = codes

    def conditions(self) -> Iterable[Condition]:
        return [Condition(code, Severity.PEOPLE) for code in self.codes]


def test_check_names_the_codes_that_cannot_be_used(install: Callable[[Feature], None]) -> None:
    assert check_conditions() == []
    install(Named("queue_late", "mine", "x" * 51))
    install(Named("mine"))

    assert [message.msg for message in check_conditions()] == [
        "2 conditions have the code 'queue_late'.",
        "2 conditions have the code 'mine'.",
        f"The code '{'x' * 51}' of a condition is longer than 50.",
    ]
