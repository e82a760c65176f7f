"""The snippets of the guides for those who come from another system are run, on both sides."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django import VERSION
from django.core.management import get_commands, load_command_class

from django_tenantqueue import ConcurrentJobMonitor, Cron, Job, Task, Unique, task
from django_tenantqueue.calls.options import OF_TASKS, Options
from django_tenantqueue.calls.sources import registered_tasks
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.operations import control
from django_tenantqueue.signals import job_finished
from django_tenantqueue.states import State
from django_tenantqueue.testing import run_pending
from tests.factories import make_job, resume_task

NEEDS = "celery http schedules"
ROOT = Path(__file__).parents[1]
HOWTO = ROOT / "docs/howto"


@dataclass(frozen=True)
class Snippet:
    """A block of Python. `wrote`: it is the code of the other system."""

    code: str
    wrote: bool
    section: str


def snippets(page: str) -> list[Snippet]:
    found, section, wrote = [], "", False
    sides = "You wrote, and still write|You wrote|You write"
    pattern = rf"^## ([^\n]*)$|^({sides})\b[^\n]*:$|^```python\n(.*?)^```$"
    same = False
    for match in re.finditer(pattern, (HOWTO / f"{page}.md").read_text(), re.M | re.S):
        heading, side, code = match.groups()
        if heading is not None:
            section, wrote, same = heading, False, False
        elif side is not None:
            wrote, same = side == "You wrote", side.endswith("still write")
        else:
            found += [Snippet(code, True, section)] if same else []
            found.append(Snippet(code, wrote, section))
    return found


GATEWAY = '''
class Gateway:
    """The services that the tasks of the guides call."""

    class Busy(Exception):
        pass

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args, **kwargs):
            self.calls.append((name, *args))
            return f"{name} of {args[0]}"

        return call
'''

# How each other system is set up: enough to import its names and to run its code here.
SETUP = {
    "coming-from-celery": """
        from celery import Celery
        from django.conf import settings
        settings.configure(USE_TZ=True, DATABASES={"default": {
            "ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
        app = Celery("shop", broker="memory://", backend="cache+memory://")
        app.conf.update(task_always_eager=True, task_store_eager_result=True)
    """,
    "coming-from-django-tasks-db": """
        import django
        from django.conf import settings
        settings.configure(
            USE_TZ=True,
            INSTALLED_APPS=["django_tasks_db"],
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
            TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}},
        )
        django.setup()
        from django.core.management import call_command
        call_command("migrate", verbosity=0)
    """,
    "coming-from-django-rq": """
        import django
        from django.conf import settings
        from fakeredis import FakeStrictRedis
        settings.configure(
            USE_TZ=True, INSTALLED_APPS=["django_rq"], RQ_QUEUES={"default": {}, "mail": {}})
        django.setup()
        from django_rq import queues
        fake = FakeStrictRedis()
        queues.get_connection = lambda *args, **kwargs: fake
    """,
    "coming-from-procrastinate": """
        import procrastinate
        from procrastinate.testing import InMemoryConnector
        app = procrastinate.App(connector=InMemoryConnector())
        app.open()
    """,
}

NO_FRAMEWORK = "Django 6.0 and later have django.tasks"


@pytest.mark.parametrize("page", SETUP)
def test_what_was_written_runs_with_the_other_system(page: str) -> None:
    if page == "coming-from-django-tasks-db" and VERSION < (6, 0):
        pytest.skip(NO_FRAMEWORK)
    code = "\n".join(each.code for each in snippets(page) if each.wrote)
    assert code
    setup = re.sub("^        ", "", SETUP[page], flags=re.M)
    program = (
        "import sys, types\n__name__ = 'shop.tasks'\n"
        "sys.modules['shop'] = sys.modules['shop.tasks'] = sys.modules['__main__']\n"
        f"{GATEWAY}\ngateway = Gateway()\n{setup}\n{code}"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def written(page: str) -> list[str]:
    """Return the code in the last column of the tables of a page."""
    cells = re.findall(r"^\| .* \| (.*) \|$", (HOWTO / f"{page}.md").read_text(), re.M)
    return [span for cell in cells for span in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("page", SETUP)
def test_names_in_the_tables_of_a_guide_exist(page: str) -> None:
    spans = written(page)
    assert len(spans) > 15
    options = {*Options.__slots__, *OF_TASKS, *inspect.signature(Task).parameters}
    options |= {*inspect.signature(Unique).parameters, "on_end"}
    options |= {field.name for field in fields(Cron)}
    own = get_commands()
    flags = {
        flag
        for action in load_command_class("django_tenantqueue", "runworker")
        .create_parser("manage.py", "runworker")
        ._actions
        for flag in action.option_strings
    }
    for span in spans:
        if re.match(r"\w+=", span):
            (call,) = ast.parse(f"task({span.replace('=…', '=1')})").body
            for keyword in call.value.keywords:  # type: ignore[attr-defined]
                assert keyword.arg in options, span
        for given in re.findall(r"(?:using|@task)\((\w+)=", span):
            assert given in options, span
        for name in re.findall(r"manage\.py (\w+)", span):
            assert own.get(name, "").startswith("django_tenantqueue"), span
        if "runworker" in span or span.startswith("--"):
            assert set(re.findall(r"--[\w-]+", span)) <= flags, span
        for owner, name in re.findall(r"\b(current_job\(\)|job|control)\.(\w+)", span):
            holder = {"job": Job, "control": control}.get(owner, RunningJob)
            assert hasattr(holder, name), span


def _running(wait: Any) -> Any:
    """Return a wait() before which the jobs run."""

    def run_and_wait(waited: Any, timeout: Any = 30.0) -> Any:
        run_pending()
        return wait(waited, timeout)

    return run_and_wait


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Yield the module of a project's tasks. A job that is waited for runs at once."""
    before = dict(registered_tasks())
    tasks = ModuleType("shop.tasks")
    for name in ("shop", "shop.tasks"):
        monkeypatch.setitem(sys.modules, name, tasks)
    exec(GATEWAY, vars(tasks))
    exec("gateway = Gateway()", vars(tasks))
    for model in (Job, ConcurrentJobMonitor):
        monkeypatch.setattr(model, "wait", _running(model.wait))
    yield tasks
    job_finished.disconnect(vars(tasks).get("tell_failure"))
    for name in registered_tasks().keys() - before.keys():
        registered_tasks().pop(name)


def write(page: str, shop: ModuleType) -> dict[str, Any]:
    for each in snippets(page):
        if not each.wrote:
            exec(compile(each.code, f"{page}.md, {each.section}", "exec"), vars(shop))
    run_pending(scheduled=True)
    return vars(shop)


def results(name: str) -> list[Any]:
    return [job.result for job in Job.objects.filter(task=f"shop.tasks.{name}").order_by("pk")]


def ends() -> set[str]:
    return set(Job.objects.values_list("state", flat=True))


@pytest.fixture
def celery(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a Celery app that runs tasks at once, and takes what `shared_task` declares."""
    from celery import Celery, _state

    monkeypatch.setattr(_state, "_on_app_finalizers", set())
    previous = _state._tls.current_app
    app = Celery("shop", broker="memory://", backend="cache+memory://", fixups=[])
    app.conf.task_always_eager = True
    yield app
    app.close()
    _state._set_current_app(previous)


@pytest.mark.django_db(transaction=True)
def test_guide_from_celery(shop: ModuleType, celery: Any, settings: Any) -> None:
    settings.MOVED_TASKS = set()

    made = write("coming-from-celery", shop)

    assert ends() == {State.SUCCESS}
    assert made["count"] == 3
    assert made["state"] == State.SUCCESS
    assert made["names"] == ["cat-small.png", "cat-large.png"]
    assert results("count_words") == [{"example": 3}, {"example": 3}]
    assert made["words"] == {"example": 3}
    assert results("merge_pages") == [
        {"report": 5, "pages": ["5/0", "5/1", "5/2"]},
        {"report": 6, "pages": ["6/0", "6/1", "6/2"]},
    ]
    assert made["report"] == {"report": 6, "pages": ["6/0", "6/1", "6/2"]}
    # the moving task was called in Celery, as it has not moved
    assert results("send_invoice") == []
    assert ("mail", 3, "Invoice") in made["gateway"].calls
    settings.MOVED_TASKS = {"shop.tasks.send_invoice"}
    made["send_invoice"].delay(4)
    assert ("mail", 4, "Invoice") not in made["gateway"].calls

    # and back: what waits here is called in Celery
    (back,) = [each.code for each in snippets("coming-from-celery") if "there.delay" in each.code]
    begun = make_job(state=State.RUNNING, task="shop.tasks.send_invoice")
    exec(back, made)

    assert begun.refresh().state == State.RUNNING
    assert begun.cancel_requested_at is None
    assert ("mail", 4, "Invoice") in made["gateway"].calls
    assert ends() == {State.SUCCESS, State.CANCELLED, State.RUNNING}
    resume_task("shop.tasks.send_invoice")
    run_pending()
    assert made["gateway"].calls.count(("mail", 4, "Invoice")) == 1


@pytest.mark.django_db
def test_receiver_of_the_guide_from_celery_tells_what_has_failed(shop: ModuleType) -> None:
    (code,) = [each.code for each in snippets("coming-from-celery") if "tell_failure" in each.code]
    exec(code, vars(shop))

    @task(name="shop.tasks.fail", max_attempts=2)
    def fail() -> None:
        raise OSError("no paper")

    fail.delay()
    run_pending(scheduled=True)

    assert shop.gateway.calls == [("mail", "ops", "shop.tasks.fail has failed: no paper")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(VERSION < (6, 0), reason=NO_FRAMEWORK)
def test_guide_from_django_tasks_db(shop: ModuleType) -> None:
    made = write("coming-from-django-tasks-db", shop)

    assert ends() == {State.SUCCESS}
    made["again"].refresh()
    assert made["again"].return_value == "mail of 7"
    assert ("charge", 3, 1) in made["gateway"].calls
    assert Job.objects.get(queue__tenant="acme").max_attempts == 3
    assert made["TASKS"]["default"]["BACKEND"] == made["OURS"]


@pytest.mark.django_db(transaction=True)
def test_guide_from_procrastinate(shop: ModuleType, settings: Any) -> None:
    settings.MOVED_TASKS = {"send_welcome"}
    there: list[Any] = []
    defer = SimpleNamespace(defer=lambda **kwargs: there.append(kwargs))
    vars(shop)["old_tasks"] = SimpleNamespace(send_welcome=defer)

    made = write("coming-from-procrastinate", shop)

    # the last snippet moves what waits: the jobs that were due when it ran
    assert {"user_id": 8} in there
    assert {"user_id": 9} in there
    assert ends() == {State.SUCCESS, State.CANCELLED}
    assert results("charge_card") == [f"charge of {3}"]
    settings.MOVED_TASKS = set()
    there.clear()
    made["welcome"](10)
    assert there == [{"user_id": 10}]


@pytest.mark.django_db(transaction=True)
def test_guide_from_django_rq(shop: ModuleType, settings: Any) -> None:
    settings.MOVED_TASKS = set()
    there: list[Any] = []
    vars(shop)["old_queue"] = SimpleNamespace(enqueue=lambda *args: there.append(args))

    made = write("coming-from-django-rq", shop)

    assert ends() == {State.SUCCESS}
    assert made["count"] == 3
    assert results("count_words") == ["count of example"]
    assert there == [("shop.tasks.send_welcome", 7)]
    settings.MOVED_TASKS = {"send_welcome"}
    made["welcome"](8)
    (back,) = [each.code for each in snippets("coming-from-django-rq") if "given =" in each.code]
    exec(back, made)
    assert there[1:] == [("shop.tasks.send_welcome", 8)]
    assert [made["fetch_rates"]._backoff_seconds(attempt, OSError()) for attempt in (1, 2, 3)] == [
        *(10, 30, 60)
    ]
