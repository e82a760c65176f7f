"""What features add where a job is enqueued and a task is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from django.test import override_settings

from django_tenantqueue import ConcurrentJobMonitor, delayed, task
from django_tenantqueue.calls.call import Call
from django_tenantqueue.calls.options import Options
from django_tenantqueue.calls.sources import RegisteredTask
from django_tenantqueue.exceptions import InvalidOption, Unsupported
from django_tenantqueue.features import Feature
from django_tenantqueue.models import Job
from django_tenantqueue.operations.queues import forget_queues
from django_tenantqueue.testing import run_pending
from tests.testapp.tasks import add, echo, noop

Install = Callable[[Feature], None]
URL = "https://example.com/end"


class Foreign:
    """A task of another system."""

    def __call__(self) -> None:
        """Do nothing."""


class Colours(Feature):
    """Does something in each place."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def task_options(self) -> Mapping[str, Callable[[Any, Any], Any]]:
        return {"colour": lambda of, value: f"{value} {of.name}"}

    def adopt(self, target: object, options: Mapping[str, Any]) -> RegisteredTask | None:
        self.asked.append((target, dict(options)))
        return add if isinstance(target, Foreign) else None

    def choose_queue(self, using: str, tenant: str, task: str) -> str | None:
        self.asked.append((using, tenant, task))
        return "red" if tenant == "acme" else None

    def follow_ups(self, options: Options, tenant: str) -> Iterable[Call]:
        if options.session == "followed":
            yield echo.call(tenant)

    def forget(self) -> None:
        self.asked.append("forget")


@pytest.fixture
def colours(install: Install) -> Colours:
    feature = Colours()
    install(feature)
    return feature


@pytest.mark.django_db
def test_queue_is_the_one_that_a_feature_chooses(colours: Colours) -> None:
    assert noop.using(tenant="acme").delay().queue.name == "red"
    assert colours.asked == [("default", "acme", noop.name)]
    assert noop.using(tenant="other").delay().queue.name == "default"
    assert noop.using(tenant="acme", queue="own").delay().queue.name == "own"

    ConcurrentJobMonitor.objects.start("m", [noop.call()], tenant="acme", parallel=1)

    assert Job.objects.get(monitor_id__isnull=False, task=noop.name).queue.name == "red"


def test_features_forget_what_they_know_of_queues(colours: Colours) -> None:
    forget_queues()

    assert colours.asked == ["forget"]


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["success", "error"])
def test_end_of_a_job_enqueues_what_a_feature_adds(colours: Colours, state: str) -> None:
    job = add.using(tenant="acme", session="followed", max_attempts=1)
    job = job.delay(1, 2) if state == "success" else job.delay(1, "2")
    run_pending()

    assert [row.state for row in Job.objects.filter(pk=job.pk)] == [state]
    assert Job.objects.get(task=echo.name).result == "acme"


@override_settings(TENANTQUEUE={"EAGER": True})
def test_eager_job_is_followed_by_what_a_feature_adds(
    colours: Colours, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(echo, "func", ran.append)

    add.using(tenant="acme", session="followed").delay(1, 2)

    assert ran == ["acme"]


@pytest.mark.django_db
@pytest.mark.parametrize("eager", [False, True])
def test_callback_url_says_which_app_it_needs(core_alone: None, eager: bool) -> None:
    with (
        override_settings(TENANTQUEUE={"EAGER": eager}),
        pytest.raises(
            Unsupported,
            match=r"callback_url= needs django_tenantqueue\.contrib\.http in INSTALLED_APPS",
        ),
    ):
        noop.using(callback_url=URL).delay()


@pytest.mark.django_db
def test_feature_adopts_a_task_of_another_system(colours: Colours) -> None:
    target = Foreign()

    assert delayed(target)(1, 2).task == add.name
    assert task(target) is add
    assert task(queue="q")(target) is add
    asked = [question for question in colours.asked if question[0] is target]
    assert asked == [(target, {}), (target, {}), (target, {"queue": "q"})]


def test_plain_function_is_not_offered_for_adoption(colours: Colours, own_tasks: object) -> None:
    declared = task(name="tests.plain")(lambda: None)

    assert (declared.name, colours.asked) == ("tests.plain", [])


def test_option_of_a_feature_is_kept_as_it_reads_it(colours: Colours, own_tasks: object) -> None:
    declared = task(name="tests.coloured", colour="red", queue="q")(lambda: None)

    assert declared.extra == {"colour": "red tests.coloured"}
    assert declared.options.queue == "q"
    assert task(name="tests.none", colour=None)(lambda: None).extra == {}
    with pytest.raises(InvalidOption, match="unknown option 'color': did you mean 'colour'"):
        task(name="tests.wrong", color="red")(lambda: None)
    with pytest.raises(InvalidOption, match="unknown option 'colour': it is an option of @task"):
        declared.using(colour="red")


def test_schedule_says_which_app_it_needs(core_alone: None, own_tasks: object) -> None:
    with pytest.raises(
        Unsupported, match=r"schedule= needs django_tenantqueue\.contrib\.schedules in INSTALLED"
    ):
        task(name="tests.nightly", schedule="30 3 * * *")(lambda: None)
    assert task(name="tests.plain")(lambda: None).extra == {}
