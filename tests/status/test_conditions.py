"""The registry of conditions: complete, in one order, and the same behind all that show it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.utils import translation

from django_tenantqueue.admin.home import LISTS
from django_tenantqueue.features import Condition, Feature, Severity
from django_tenantqueue.models import TaskControl
from django_tenantqueue.states import State
from django_tenantqueue.status.conditions import Code, Look, conditions, of, problems
from django_tenantqueue.status.conditions.core import CORE
from django_tenantqueue.status.explanation import explain
from tests.factories import make_job, make_queue, make_worker

PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]")
FOUND = [condition for condition in CORE if condition.find is not None]


def test_every_code_has_one_condition_in_the_order_of_the_codes() -> None:
    assert [condition.code for condition in CORE] == list(Code)
    assert [of(code).code for code in Code] == list(Code)


def test_what_people_must_do_comes_before_what_passes() -> None:
    severities = [condition.severity for condition in CORE]

    assert severities == sorted(severities, key=list(Severity).index)


@pytest.mark.parametrize("condition", CORE, ids=lambda condition: condition.code)
def test_condition_says_something_of_a_job_or_of_the_fleet(condition: Condition) -> None:
    assert condition.job or condition.fleet
    assert condition.remedy or not condition.job


@pytest.mark.parametrize("condition", FOUND, ids=lambda condition: condition.code)
def test_condition_of_the_fleet_has_a_title_a_sentence_and_a_list(condition: Condition) -> None:
    assert condition.title
    assert condition.fleet
    assert condition.where in {*LISTS, "failures"}


def test_codes_and_titles_of_all_apps_differ() -> None:
    found = conditions()
    titles = [str(condition.title) for condition in found if condition.title]

    assert len({condition.code for condition in found}) == len(found)
    assert len(set(titles)) == len(titles)


@pytest.mark.django_db
def test_paused_task_is_one_condition_of_its_job_and_of_the_fleet() -> None:
    make_worker()
    TaskControl.objects.create(task="app.task", paused=True)
    job = make_job(make_queue("acme"), state=State.HELD, held_by="task", task="app.task")

    (problem,) = [p for p in problems(Look("default")) if p.code == Code.TASK_PAUSED]
    (cause,) = [c for c in explain("default", job).causes if c.code == Code.TASK_PAUSED]

    assert cause.remedy == problem.remedy == "Resume the task."
    assert (problem.where, problem.filter) == ("tasks", "paused__exact=1")


@pytest.mark.django_db
def test_problems_come_in_the_order_of_the_registry(install: Callable[[Feature], None]) -> None:
    class Late(Feature):
        def conditions(self) -> list[Condition]:
            own = Condition("own", Severity.TIME, fleet="own trouble", find=lambda look: [{}])
            return [own]

    install(Late())
    make_queue("acme", "paused", paused=True)
    make_job(make_queue("acme", "late"), task="app.task")

    found = [problem.code for problem in problems(Look("default"))]

    assert found[0] == Code.NO_WORKER
    assert found[-1] == "own"
    ranks = [list(Code).index(Code(code)) for code in found[:-1]]
    assert ranks == sorted(ranks)


@pytest.mark.django_db
def test_users_who_see_some_tenants_are_told_of_these_alone() -> None:
    for tenant in ("acme", "other"):
        make_job(make_queue(tenant, "stopped", paused=True))

    found = problems(Look("default", ["acme"], held=[]))

    texts = {problem.code: problem.text for problem in found}
    stopped = "ready jobs in paused queues, or in queues without slots: acme/stopped"
    assert texts[Code.QUEUE_PAUSED] == stopped
    assert not [text for text in texts.values() if "other" in text]
    assert Code.NO_WORKER not in texts


@pytest.mark.parametrize("condition", CORE, ids=lambda condition: condition.code)
def test_texts_have_the_same_placeholders_in_japanese(condition: Condition) -> None:
    values = {"count": 2, "all": 2, "jobs": 2, "failures": 2, "most": 2, "slots": 2, "parallel": 2}

    class Names(dict[str, object]):
        def __missing__(self, name: str) -> object:
            return 7

    for text in (condition.job, condition.fleet, condition.remedy):
        shown = {}
        for language in ("en", "ja"):
            with translation.override(language):
                shown[language] = str(text % Names(values)) if text else ""
        assert not PLACEHOLDER.search(shown["ja"])
        assert (shown["en"] != shown["ja"]) == bool(text)
