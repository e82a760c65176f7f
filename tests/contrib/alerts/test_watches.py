"""Rules watch any condition: those of the core, and those of an app of the project."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.exceptions import ValidationError

from django_tenantqueue import features
from django_tenantqueue.contrib.alerts.check import check_rules
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.alerts.watches import watched
from django_tenantqueue.features import Condition, Feature, Severity
from django_tenantqueue.models import TaskControl
from django_tenantqueue.states import State
from django_tenantqueue.status.conditions import conditions
from tests.factories import make_job, make_queue, make_worker

pytestmark = pytest.mark.django_db


def check() -> list[tuple[str, str]]:
    """Check all rules now; return the label and text of each open alert."""
    AlertRule.objects.update(next_at="2020-01-01T00:00Z")
    check_rules("default")
    rows = Alert.objects.filter(resolved_at__isnull=True).order_by("label")
    return list(rows.values_list("label", "text"))


def test_every_condition_of_the_fleet_can_be_watched() -> None:
    of_fleet = {c.code for c in conditions() if c.find is not None}

    assert of_fleet < set(watched())
    assert {"queue_backlog", "jobs_held", "job_failed"} < set(watched())


def test_each_object_of_a_condition_opens_an_alert() -> None:
    make_worker()
    for name in ("app.first", "app.second"):
        TaskControl.objects.create(task=name, paused=True)
        make_job(make_queue("acme", name), state=State.HELD, held_by="task", task=name)
    make_alert_rule("paused", "task_paused", log=True)

    assert check() == [
        ("app.first", "held jobs of paused tasks: app.first"),
        ("app.second", "held jobs of paused tasks: app.second"),
    ]

    TaskControl.objects.filter(task="app.first").update(paused=False)
    assert [label for label, _ in check()] == ["app.second"]


def test_condition_without_names_opens_one_alert() -> None:
    make_alert_rule("workers", "no_worker", log=True)

    assert check() == [("no worker runs", "no worker runs: start one with manage.py runworker")]

    make_worker()
    assert check() == []


def test_rule_of_a_tenant_sees_that_tenant_alone() -> None:
    for tenant in ("acme", "other"):
        make_job(make_queue(tenant, "stopped", paused=True))
    make_alert_rule("paused", "queue_paused", tenant="acme", log=True)

    ((label, _text),) = check()

    assert label == "acme/stopped"
    assert Alert.objects.get().tenant == "acme"


@pytest.mark.parametrize(
    ("kind", "columns", "column"),
    [
        ("no_worker", {"tenant": "acme"}, "tenant"),
        ("task_paused", {"task": "app.task"}, "task"),
        ("queue_paused", {"queue": "mails"}, "queue"),
    ],
)
def test_rule_is_refused_when_its_condition_has_no_such_scope(
    kind: str, columns: dict[str, str], column: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        make_alert_rule("rule", kind, **columns)

    assert list(caught.value.message_dict) == [column]


class Deliveries(Feature):
    """An app of the project with a condition of its own."""

    def conditions(self) -> list[Condition]:
        late = Condition(
            "delivery_late",
            Severity.PEOPLE,
            title="late delivery",
            fleet="late deliveries: %(names)s",
            find=lambda look: [{"names": ["17"]}],
        )
        return [late]


def test_condition_of_an_app_is_watched_while_it_is_installed(
    install: Callable[[Feature], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    without = features.installed()
    install(Deliveries())
    rule = make_alert_rule("late", "delivery_late", log=True)

    assert check() == [("17", "late deliveries: 17")]
    assert rule.kind_text == "late delivery"

    monkeypatch.setattr(features, "installed", lambda: without)
    features._bound.cache_clear()
    assert check() == [("17", "late deliveries: 17")]  # it cannot tell that it is over
    rule.refresh_from_db()
    assert rule.last_error.startswith(
        "Unsupported: no installed app has the condition 'delivery_late': add its app"
    )
    with pytest.raises(ValidationError, match="No installed app has this condition"):
        rule.full_clean()
