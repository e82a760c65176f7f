"""`manage.py celeryreport` reads a project's Celery tasks, schedules and calls."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, Task
from celery.schedules import crontab
from django.core.management import CommandError, call_command

import django_tenantqueue
from django_tenantqueue import ConcurrentJobMonitor, Cron, Every, Job, task
from django_tenantqueue.calls.sources import registered_tasks
from django_tenantqueue.contrib.celery_report import make_report, names, scan
from django_tenantqueue.contrib.celery_report import report as reports
from django_tenantqueue.contrib.celery_report.options import read_settings
from django_tenantqueue.contrib.celery_report.schedules import read_schedules
from django_tenantqueue.contrib.celery_report.tasks import rate, read_tasks
from django_tenantqueue.execution.current_job import RunningJob
from tests.contrib.schedules.test_importbeat import Rows, beat, cron, row  # noqa: F401

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests/celery_project"

REPORT = """
import django
from django.conf import settings
settings.INSTALLED_APPS.append("django_tenantqueue")
django.setup()
from django.core.management import call_command
call_command("celeryreport", "--format", "json")
print("=====")
call_command("celeryreport", "--app", "shop")
"""


def run(*arguments: str, **environment: str) -> str:
    """Run Python in the project."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DJANGO", "DATABASE"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=PROJECT,
        env={
            **kept,
            "PYTHONPATH": os.pathsep.join((str(PROJECT), str(ROOT))),
            "DJANGO_SETTINGS_MODULE": "shop.settings",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def output() -> tuple[dict[str, Any], str]:
    """Return the report on the project, as JSON and as text."""
    found, _, text = run("-c", REPORT).partition("=====\n")
    return json.loads(found), text


@pytest.fixture
def declared() -> Iterator[None]:
    """Forget the tasks that a test declares."""
    before = dict(registered_tasks())
    yield
    for name in registered_tasks().keys() - before.keys():
        registered_tasks().pop(name)


def test_project_works_with_celery_alone(tmp_path: Path) -> None:
    told = json.loads(run("try_it.py", SHOP_EAGER="1", SHOP_DATA=str(tmp_path)))

    assert told["answers"]["/orders/3/invoice/"] == {"order": 3, "total": 300}
    assert told["answers"]["/images/cat/resize/"] == {"names": ["cat-small.png", "cat-large.png"]}
    assert told["files"]["report-5"] == ["5/0", "5/1", "5/2", "5/3"]
    assert told["files"]["words-terms"] == ["words", "of", "https://example.com/terms"]
    assert set(told["files"]) - set(told["after"]) == {"welcome-7"}


def declare(line: str, imports: tuple[str, ...] = ()) -> Any:
    """Return the task that the line declares."""
    names: dict[str, Any] = {"task": task, "Cron": Cron, "Every": Every, "__name__": "shop.tasks"}
    names |= {name: import_module(name) for name in imports}
    exec(f"{line}\ndef declared(older_than_days=1): ...", names)
    return names["declared"]


@pytest.mark.usefixtures("declared")
def test_each_task_of_the_project_has_a_line_that_declares_it(output) -> None:
    report, text = output

    lines = {each["name"].rpartition(".")[2]: each["write"] for each in report["tasks"]}
    assert len(lines) == 15
    for line in lines.values():
        assert declare(line).name == "shop.tasks.declared"
        assert line in text
    assert lines["charge_card"] == (
        "@task(max_attempts=4, backoff=30, backoff_max=30, retry_when=())"
    )
    assert lines["fetch_rates"] == (
        "@task(max_attempts=5, backoff=1, backoff_max=60, "
        "retry_when=(ConnectionError, TimeoutError))"
    )
    assert lines["build_invoice"] == "@task(max_attempts=1, timeout=20, hard_timeout=30)"
    assert lines["resize_image"] == "@task(max_attempts=1, max_per_second=10 / 60)"
    assert lines["sync_stock"] == "@task(queue='slow', retry_when=())"
    assert "Cron('30 3 * * *', kwargs={'older_than_days': 30})" in lines["clean_up"]


def test_each_line_of_the_project_that_uses_celery_is_named(output) -> None:
    report, text = output

    for call in report["calls"]:
        source = Path(call["file"]).read_text().splitlines()
        word = call["code"].split("(", 1)[0].split(" ")[0].split("=")[0]
        assert word in source[call["line"] - 1]
        assert call["write"] in text
    found = {(Path(c["file"]).name, c["kind"]): c["write"] for c in report["calls"]}
    assert found["views.py", "apply_async"]
    assert found["tasks.py", "retry"] == (
        "raise Retry(after=10 * current_job().attempt) from error"
    )
    assert {kind for _, kind in found} == {
        *("app", "apply_async", "chain", "chord", "get", "group", "hook", "import"),
        *("on_commit", "request", "result", "retry", "update_state"),
    }


def test_example_of_the_reference_is_what_the_command_prints(output) -> None:
    page = (ROOT / "docs/reference/commands.md").read_text()
    (example,) = re.findall(r"```text\n\$ manage\.py celeryreport\n(.*?)```", page, re.S)
    printed = iter(output[1].splitlines())

    for line in example.splitlines():
        assert line == "…" or line in printed, line  # in this order


def test_schedules_and_settings_of_the_project_are_named(output) -> None:
    report, _ = output

    writes = {each["name"]: each["write"] for each in report["schedules"]}
    assert writes == {
        "clean up every night": ("the line of shop.tasks.clean_up above, which has it"),
        "stock of the north": (
            "make_schedule('stock of the north', 'shop.tasks.sync_stock', Every(minutes=5), "
            "args=('north',))"
        ),
        "stock of the south": (
            "make_schedule('stock of the south', 'shop.tasks.sync_stock', Every(minutes=10), "
            "args=('south',))"
        ),
    }
    settings = {each["name"]: each["write"] for each in report["settings"]}
    assert settings["task_soft_time_limit"] == "'DEFAULT_TIMEOUT': 600 in TENANTQUEUE"
    assert settings["task_time_limit"].startswith("'HARD_TIMEOUT_GRACE': 60 in TENANTQUEUE")
    assert "redis://" not in json.dumps(report["settings"])


# a Celery app of each test


@pytest.fixture
def app() -> Iterator[Celery]:
    """Yield a Celery app that is nobody's default."""
    made = Celery("office", set_as_current=False, broker="memory://", fixups=[])
    yield made
    made.close()


class Logged(Task):
    def on_retry(self, exc, task_id, args, kwargs, einfo):
        """Be called before another run."""


def read(app: Celery, made: Any) -> Any:
    (found,) = read_tasks(app, app.tasks[made.name], read_schedules(app))
    return found


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "@task(max_attempts=1)"),
        ({"acks_late": True}, "@task(retry_when=())"),
        (
            {"autoretry_for": (OSError,), "max_retries": None, "default_retry_delay": 0},
            "@task(max_attempts=32767, backoff=0, retry_when=(OSError,))",
        ),
        (
            {"autoretry_for": (zlib.error,), "retry_backoff": 5, "max_retries": 0},
            "@task(max_attempts=1, backoff=5, backoff_max=600, retry_when=(zlib.error,))",
        ),
        (
            {"autoretry_for": (Exception,), "retry_kwargs": {"max_retries": 7, "countdown": 2}},
            "@task(max_attempts=8, backoff=2, backoff_max=2)",
        ),
        ({"expires": 60, "queue": "mail"}, "@task(queue='mail', max_attempts=1, expires_at=60)"),
        ({"rate_limit": "1/h"}, "@task(max_attempts=1, max_per_second=1 / 3600)"),
        ({"name": "office.mail"}, "@task(max_attempts=1, name='office.mail')"),
    ],
)
@pytest.mark.filterwarnings("ignore::celery.exceptions.CDeprecationWarning")
@pytest.mark.usefixtures("declared")
def test_options_of_a_task_become_ours(app: Celery, options: dict[str, Any], line: str) -> None:
    @app.task(shared=False, **options)
    def send(): ...

    found = read(app, send)

    assert found.write == line
    assert declare(line, tuple(name.partition(".")[0] for name in found.imports))
    assert set(options) - {"name"} <= set(found.options)
    assert Path(found.file) == Path(__file__)


@pytest.mark.filterwarnings("ignore::celery.exceptions.CDeprecationWarning")
def test_what_a_declaration_cannot_say_is_a_note(app: Celery) -> None:
    @app.task(
        shared=False,
        bind=True,
        base=Logged,
        serializer="pickle",
        priority=3,
        dont_autoretry_for=(OSError,),
        throws=(ValueError,),
    )
    def send(me, address):
        return me.replace(address)

    notes = "\n".join(read(app, send).notes)

    assert "remove the parameter me" in notes
    assert "on_retry(): the hook error(job, error)" in notes
    assert "serializer 'pickle': arguments are JSON here" in notes
    assert "priority 3: here a lower number runs first" in notes
    assert "dont_autoretry_for: " in notes
    assert "self.replace(): enqueue the other task" in notes
    assert "throws: nothing" in notes


@pytest.mark.parametrize(
    ("options", "told"),
    [({"acks_late": True}, 1), ({"autoretry_for": (OSError,), "acks_late": True}, 1), ({}, 0)],
)
def test_run_that_is_killed_at_its_limit_is_told_to_be_repeated(
    app: Celery, options: dict[str, Any], told: int
) -> None:
    @app.task(shared=False, time_limit=30, **options)
    def send(): ...

    notes = [note for note in read(app, send).notes if "killed at hard_timeout" in note]

    assert len(notes) == told


def test_callback_for_errors_is_told_where_the_error_is(app: Celery) -> None:
    @app.task(shared=False)
    def tell(request, exc, traceback): ...

    (note,) = read(app, tell).notes

    assert note.startswith("remove the parameters request, exc and traceback; current_job().prev")


def test_task_that_is_a_class_is_told(app: Celery) -> None:
    class Send(Task):
        name = "office.send"

        def run(self): ...

    found = read(app, app.register_task(Send()))

    assert any("make a function of Send.run()" in note for note in found.notes)


def test_limits_that_celery_took_from_its_settings_are_not_those_of_the_task(app: Celery) -> None:
    app.conf.update(task_time_limit=60, task_soft_time_limit=50, task_acks_late=False)

    @app.task(shared=False, time_limit=70)
    def send(): ...

    found = read(app, send)

    assert found.write == "@task(max_attempts=1, hard_timeout=70)"
    assert found.options == {"time_limit": "70"}


def test_settings_that_each_task_takes_over_are_told(app: Celery) -> None:
    app.conf.update(task_annotations={"*": {"rate_limit": "1/s"}}, task_default_priority=3)

    found = {row.name: row.write for row in read_settings(app)}

    assert found["task_annotations"].startswith("the options of each task: max_per_second=…")
    assert found["task_default_priority"].startswith("priority=… of each task: a lower number")


def test_route_is_a_queue_unless_it_is_the_default(app: Celery) -> None:
    app.conf.task_default_queue = "work"
    app.conf.task_routes = {"*.mail": {"queue": "letters"}, "*.other": {"queue": "work"}}

    @app.task(shared=False, name="office.mail")
    def mail(): ...

    @app.task(shared=False, name="office.other")
    def other(): ...

    assert "queue='letters'" in read(app, mail).write
    assert "queue" not in read(app, other).write


@pytest.mark.parametrize(
    ("text", "code"), [("10/s", "10"), ("2.5/m", "2.5 / 60"), (4, "4"), ("1/h", "1 / 3600")]
)
def test_rate_is_starts_a_second(text: Any, code: str) -> None:
    assert rate(text) == code


@pytest.mark.parametrize(
    ("schedule", "when"),
    [
        (30, "Every(seconds=30)"),
        (timedelta(hours=36), "Every(hours=36)"),
        (timedelta(days=2), "Every(days=2)"),
        (crontab(), "Cron('* * * * *')"),
        (
            crontab(minute="*/5", hour={9, 17}, day_of_week="mon,fri"),
            "Cron('*/5 9,17 * * mon,fri')",
        ),
    ],
)
@pytest.mark.usefixtures("declared")
def test_times_of_beat_become_ours(app: Celery, schedule: Any, when: str) -> None:
    app.conf.beat_schedule = {"one": {"task": "office.send", "schedule": schedule}}

    (entry,) = read_schedules(app)

    assert entry.when == when
    assert declare(entry.write)


def test_time_zone_of_beat_is_named_when_it_is_not_that_of_the_project(app: Celery) -> None:
    app.conf.timezone = "Asia/Tokyo"
    app.conf.beat_schedule = {"one": {"task": "office.send", "schedule": crontab(minute=1)}}

    (entry,) = read_schedules(app)

    assert entry.when == "Cron('1 * * * *', time_zone='Asia/Tokyo')"


@pytest.mark.parametrize(
    ("schedule", "note"),
    [
        (crontab(day_of_month=1, day_of_week=1), "must both match in Celery"),
        (SimpleNamespace(event="sunset"), "has no form here"),
        (0.5, "has no form here"),
    ],
)
def test_times_of_beat_that_have_no_form_are_told(app: Celery, schedule: Any, note: str) -> None:
    app.conf.beat_schedule = {"one": {"task": "office.send", "schedule": schedule}}

    (entry,) = read_schedules(app)

    assert entry.write == ""
    assert note in " ".join(entry.notes)


def test_schedule_that_code_adds_is_found(app: Celery) -> None:
    @app.task(shared=False, name="office.send")
    def send(to): ...

    @app.on_after_finalize.connect
    def add(sender, **kwargs):
        sender.add_periodic_task(90, send.s("ann"), name="often", queue="mail", priority=3)

    app.finalize()
    (entry,) = read_schedules(app)

    assert entry.write == "@task(schedule=Every(seconds=90, args=('ann',)))"
    assert entry.notes == [
        "queue='mail': write queue='mail' in @task",
        "priority=3: write priority=… in @task; a lower number runs first here",
    ]


@pytest.mark.django_db
def test_rows_of_beat_are_imported_by_their_command(app: Celery, beat: Rows) -> None:  # noqa: F811
    app.conf.beat_schedule = {"both": {"task": "office.send", "schedule": 30}}
    beat += [row("good", crontab=cron()), row("bad", crontab=cron("99")), row("never")]
    beat += [row("both", crontab=cron())]

    found = {entry.name: entry for entry in read_schedules(app)}
    assert found["both"].source == "beat_schedule"

    assert found["good"].write == "manage.py importbeat"
    assert found["bad"].write == ""
    assert "Bad minute" in found["bad"].notes[0]
    assert found["never"].notes == ["it has no times"]


# lines


CANVAS = "from celery.canvas import chain, chord, group\n"


def found_in(tmp_path: Path, code: str) -> list[tuple[int, str, str]]:
    (tmp_path / "code.py").write_text(code)
    found, unread = scan([tmp_path / "code.py"], {"send", "mail"})
    assert unread == []
    of_canvas = ("from celery.canvas import", "from celery import c")
    return [
        (each.line, each.kind, each.write) for each in found if not each.code.startswith(of_canvas)
    ]


@pytest.mark.parametrize(
    ("code", "write"),
    [
        ("send.apply_async()", "send.delay()"),
        ("send.apply_async([1, 2], {'a': b})", "send.delay(1, 2, a=b)"),
        ("t.send.apply_async(x, eta=when)", "t.send.using(run_at=when).delay(*x)"),
        ("send.apply_async(kwargs=y, time_limit=3)", "send.using(hard_timeout=3).delay(**y)"),
        (
            "send.apply_async((1,), task_id='x', shadow='y')",
            "send.delay(1); the id of a job is given by the database; shadow is left out",
        ),
        ("self.retry()", "raise Retry()"),
        (
            "(send.s(1, a=2) | mail.s(3) | send.si())()",
            (
                "send.using(then=mail.using(then=send.call()).call(Placeholder('result'), 3))"
                ".delay(1, a=2)"
            ),
        ),
        (
            f"{CANVAS}chain(send.s(1), many)()",
            "first.using(then=second.call(Placeholder('result'))).delay(…)",
        ),
        (
            f"{CANVAS}chain(send.si(1).on_error(mail.s()), mail.si(2).set(queue='x'))()",
            (
                "send.using(then=mail.using(queue='x').call(2), on_end=mail.call()).delay(1); "
                "the call of on_end looks at current_job().previous.state"
            ),
        ),
        (
            f"{CANVAS}chain(send.s(1), mail.s().set(shadow='x'))()",
            "first.using(then=second.call(Placeholder('result'))).delay(…)",
        ),
        (
            "back = send.s(1, a=2).on_error(mail.s())",
            (
                "send.using(on_end=mail.call()).call(1, a=2); the call of on_end looks at "
                "current_job().previous.state, and the callback of a group at the states of its "
                "jobs"
            ),
        ),
        (
            "send.apply_async((1,), **more)",
            "send.delay(1); the options of **more are those of .using(…)",
        ),
        (
            "send.apply_async((1,), priority=3)",
            "send.delay(1); priority=… of .using(…): a lower number runs first, 240 is the default",
        ),
        (f"{CANVAS}group(send.s(1), mail.si(2))()", "group([send.call(1), mail.call(2)]).delay()"),
        (f"{CANVAS}group(send.s(1))()", "group([send.call(1)]).delay()"),
        (f"{CANVAS}group(calls).delay()", "group(calls).delay()"),
        (
            f"{CANVAS}chord([send.s(1)], mail.s(2))()",
            (
                "group([send.call(1)]).delay(on_done=mail.call(2)); it reads the results by "
                "current_job().summary.details()"
            ),
        ),
        (
            f"{CANVAS}chord(calls)(back)",
            (
                "group(calls).delay(on_done=back); it reads the results by "
                "current_job().summary.details()"
            ),
        ),
        (
            f"{CANVAS}chord(calls)(make())",
            "group([task.call(…), …]).delay(on_done=callback.call(…))",
        ),
        (
            f"{CANVAS}chain(send.s(1), group(mail.s(n) for n in m), send.s())()",
            (
                "first.using(then=start.call(…)).delay(…), and a task start that runs "
                "group([task.call(…), …]).delay(on_done=last.call(…)): a group behind a job is "
                "started by a task"
            ),
        ),
        ("send.s(1, to='ann').delay()", "send.delay(1, to='ann')"),
        ("send.s(1, **more).delay()", "send.delay(1, **{**more})"),
        ("send.si(1).apply_async(countdown=3)", "send.using(run_at=3).delay(1)"),
        (
            "send.retry(exc=e, countdown=5, max_retries=2)",
            "raise Retry(after=5) from e; its max_retries is max_attempts of the task",
        ),
    ],
)
def test_call_is_rewritten(tmp_path: Path, code: str, write: str) -> None:
    assert [found for *_, found in found_in(tmp_path, code)] == [write]


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("(send.s(1) | mail.s() | send.si(2))()", ["chain"]),
        ("from celery import chain as c\nc(send.s(), mail.s())", ["chain"]),
        ("import celery\ncelery.group(send.s(n) for n in ns)()", ["group"]),
        ("send.chunks(rows, 10)", ["chunks"]),
        ("r = send.delay(1)\nprint(r.get())", ["get"]),
        ("send.delay(1).get()", ["get"]),
        ("from celery.result import AsyncResult\nAsyncResult(i).get()", ["import", "get"]),
        ("app.AsyncResult(i).revoke()", ["AsyncResult", "revoke"]),
        ("app.control.revoke(i)", ["revoke"]),
        ("app.send_task('office.send')", ["send_task"]),
        ("send.delay_on_commit(1)", ["delay_on_commit"]),
        ("from celery.signals import task_failure, worker_ready", ["signals", "signals"]),
        ("from celery import signals\n@signals.task_failure.connect\ndef f(): ...", ["signals"]),
        ("import celery\ncelery.signals.task_retry.connect(f)", ["signals"]),
        ("from celery.exceptions import TimeoutError, Ignore", ["import", "import"]),
        ("from kombu import Exchange, Queue", ["import"]),
        ("from .celery import app\napp.send_task('x')", ["app", "send_task"]),
        ("from mysite.celery import app as celery_app", ["app"]),
        (
            (
                "from celery import Celery\napp = Celery('x')\napp.autodiscover_tasks()\n"
                "app.config_from_object('x')\napp.add_periodic_task(1, send.s())\n"
                "app.conf.beat_schedule = {}"
            ),
            ["app", "app", "app", "app", "setting", "s"],
        ),
        ("from celery.schedules import crontab", ["import"]),
        ("settings.CELERY_TASK_ALWAYS_EAGER = True", ["setting"]),
        ("override_settings(CELERY_TASK_ALWAYS_EAGER=True)", ["setting"]),
        ("r = send.delay(1)\nr.ready(); r.info; r.id; r.revoke()", ["result", "result", "revoke"]),
        ("@shared_task(on_failure=tell)\ndef send(): ...", ["hook"]),
        (
            "class Base(celery.Task):\n def on_failure(self): ...\n def after_return(self): ...",
            ["hook", "hook"],
        ),
        ("class Form:\n def on_failure(self): ...", []),
        ("def a():\n r = send.delay(1)\ndef b(r):\n r.get()", []),
        # what only looks alike
        ("from itertools import chain\nchain(a, b)", []),
        ("settings.get('x'); {}.get(1); rows.map(f); send.delay(1)", []),
        ("a | b; session.retry(); text.signature()", []),
    ],
)
def test_use_of_celery_is_found(tmp_path: Path, code: str, kinds: list[str]) -> None:
    assert sorted(kind for _, kind, _ in found_in(tmp_path, code)) == sorted(kinds)


def test_what_a_bound_task_does_with_itself_is_found(tmp_path: Path) -> None:
    code = (
        "@app.task(bind=True)\n"
        "def send(me):\n"
        "    me.update_state(state='X')\n"
        "    return me.request.id, other.request\n"
    )

    assert [(line, kind) for line, kind, _ in found_in(tmp_path, code)] == [
        (3, "update_state"),
        (4, "request"),
    ]


@pytest.mark.parametrize(
    ("code", "write"),
    [
        ("self.request.retries", "current_job().attempt - 1"),
        ("self.request.id", "current_job().id, which is an int"),
        ("self.request", "current_job(): id, attempt, max_attempts, tenant, queue"),
        ("self.request.chord", "current_job(): id, attempt, max_attempts, tenant, queue"),
        ("self.max_retries", "current_job().max_attempts - 1"),
        (
            "self.retry(countdown=2 ** self.request.retries)",
            "raise Retry(after=2 ** (current_job().attempt - 1))",
        ),
    ],
)
def test_what_a_bound_task_knows_of_itself_is_rewritten(tmp_path: Path, code, write) -> None:
    found = found_in(tmp_path, f"@shared_task(bind=True)\ndef send(self):\n    {code}\n")

    assert [written for *_, written in found] == [write]


@pytest.mark.parametrize(
    ("start", "reading"),
    [
        ("send.delay(1)", "job.wait(timeout=…).result; "),
        ("AsyncResult(i)", "job.wait(timeout=…).result; "),
        ("group(calls)()", "[job.wait(timeout=…).result for job in monitor.details()"),
        ("group(calls).apply_async()", "[job.wait(timeout=…).result for job in "),
        ("GroupResult.restore(i)", "[job.wait(timeout=…).result for job in "),
        ("chord(calls)(mail.s())", "Job.objects.get(pk=monitor.anchor_id).wait(timeout=…).result"),
        ("chain(send.s(1), mail.s())()", "job.wait(timeout=…) waits for the first job"),
        ("(send.s(1) | mail.s()).delay()", "job.wait(timeout=…) waits for the first job"),
        ("begin()", "[job.wait(timeout=…).result for job in "),
        ("later()", "[job.wait(timeout=…).result for job in "),
    ],
)
def test_result_is_read_by_what_was_started(tmp_path: Path, start: str, reading: str) -> None:
    code = (
        f"{CANVAS}from celery.result import AsyncResult, GroupResult\n"
        "def begin():\n    return group(calls)()\n"
        "def later():\n    many = group(calls)\n    return many.apply_async()\n"
        f"def read():\n    found = {start}\n    return found.get()\n"
    )

    (write,) = [write for _, kind, write in found_in(tmp_path, code) if kind == "get"]

    assert write.startswith(reading)


def test_result_is_read_after_the_jobs_have_run_in_tests(tmp_path: Path) -> None:
    (tmp_path / "test_code.py").write_text("send.delay(1).get()")

    (found,), _ = scan([tmp_path / "test_code.py"], {"send"})

    assert found.write == "run_pending(), and then job.refresh().result"


def test_options_of_a_chain_are_told(tmp_path: Path) -> None:
    code = f"{CANVAS}chain(send.s(1), mail.s()).apply_async(countdown=5, link_error=x)"

    (write,) = [write for _, kind, write in found_in(tmp_path, code) if kind == "chain"]

    assert write.startswith("send.using(then=mail.call(Placeholder('result'))).delay(1); ")
    assert "run_at=5 of .using(…); on_end=… of each call" in write


def test_options_of_a_group_are_told(tmp_path: Path) -> None:
    code = f"{CANVAS}group(calls).apply_async(countdown=5, priority=3, expires=9, link_error=x)"

    ((_, _, write),) = found_in(tmp_path, code)

    assert write == (
        "group(calls).delay(); the jobs of a group start at once: enqueue a task with run_at=… "
        "that enqueues the group; priority=… of .using(…): a lower number runs first, 240 is the "
        "default; expires_at=… of the .using(…) of each call; on_done=… of .delay(), whose call "
        "looks at the states of the jobs"
    )


def test_group_in_a_variable_is_started_once(tmp_path: Path) -> None:
    code = f"{CANVAS}many = group([send.s(1)])\nmany.apply_async(queue='x')"

    writes = [write for *_, write in found_in(tmp_path, code)]

    assert writes == ["group([send.call(1)])", "many.delay(); queue='x' of .using(…)"]


@pytest.mark.parametrize("kind", ["chain", "chord"])
def test_other_canvas_in_a_variable_is_started_once(tmp_path: Path, kind: str) -> None:
    code = f"{CANVAS}later = {kind}([send.s(1)], mail.s())\nlater.apply_async()"

    writes = [write for *_, write in found_in(tmp_path, code)]

    assert writes[-1] == f"the .delay(…) that is printed for the {kind}"
    assert ".delay(" in writes[0]


def test_callback_for_errors_of_a_chord_is_told(tmp_path: Path) -> None:
    code = f"{CANVAS}chord([send.s(1)])(mail.s(2).on_error(x.s()))"

    ((_, _, write),) = found_in(tmp_path, code)

    assert write.startswith("group([send.call(1)]).delay(on_done=mail.call(2)); ")
    assert write.endswith("and their states, in place of on_error")


def test_what_the_report_says_to_write_exists() -> None:
    texts = "\n".join(
        text
        for name, table in vars(names).items()
        if name.isupper() and isinstance(table, dict)
        for text in table.values()
    )

    for name in re.findall(r"\bcurrent_job\(\)\.(\w+)", texts):
        assert hasattr(RunningJob, name), name
    for name in re.findall(r"\bjob\.(\w+)", texts):
        assert hasattr(Job, name), name
    for name in re.findall(r"\bmonitor\.(\w+)", texts):
        assert hasattr(ConcurrentJobMonitor, name), name
    for name in re.findall(r"from django_tenantqueue import (\w+)", texts):
        assert name in django_tenantqueue.__all__, name


def test_schedule_stands_in_the_line_of_its_task_alone(app: Celery) -> None:
    app.conf.task_routes = {"office.send": {"queue": "mail"}}
    app.conf.beat_schedule = {
        "one": {"task": "office.send", "schedule": 30, "options": {"queue": "mail"}},
        "lost": {"task": "office.lost", "schedule": 30},
    }

    @app.task(shared=False, name="office.send")
    def send(): ...

    report = make_report(app)
    lines = {entry.name: entry for entry in report.schedules}

    (line,) = [each.write for each in report.tasks if each.name == "office.send"]
    assert (
        line
        == "@task(queue='mail', max_attempts=1, schedule=Every(seconds=30), name='office.send')"
    )
    assert lines["one"].write == "the line of office.send above, which has it"
    assert lines["one"].notes == []
    assert lines["lost"].write == "@task(schedule=Every(seconds=30))"
    assert lines["lost"].notes == ["no task of the name 'office.lost' is registered"]


def test_file_that_is_no_python_is_named(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("print 1")

    found, unread = scan([tmp_path / "code.py"], set())

    assert found == []
    assert "code.py: " in unread[0]


# the command


def test_command_names_the_package_when_celery_is_missing(monkeypatch) -> None:
    monkeypatch.setattr(reports, "find_spec", lambda name: None)

    with pytest.raises(CommandError, match="pip install celery"):
        call_command("celeryreport")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], r"no Celery app in 'tests\.celery': name it as in celery -A"),
        (["--app", "tests.nothing"], "--app 'tests.nothing' cannot be imported"),
        (["--app", "tests.sample_tasks"], "no Celery app|cannot be imported"),
        (["--path", "/nowhere"], "--path '/nowhere' is no directory"),
    ],
)
def test_command_says_what_is_wrong(arguments: list[str], said: str, settings) -> None:
    settings.SETTINGS_MODULE = "tests.settings"
    with pytest.raises(CommandError, match=said):
        call_command("celeryreport", *arguments)


def test_error_in_the_module_of_the_app_is_told(tmp_path: Path, monkeypatch, settings) -> None:
    (tmp_path / "office").mkdir()
    (tmp_path / "office/__init__.py").touch()
    (tmp_path / "office/celery.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    settings.SETTINGS_MODULE = "office.settings"

    with pytest.raises(CommandError, match=r"office\.celery.*No module named 'no_such_package'"):
        call_command("celeryreport")


def test_files_of_other_directories_are_read(app: Celery, tmp_path: Path) -> None:
    (tmp_path / "services.py").write_text("from celery import group\ngroup()")

    found = make_report(app, [tmp_path]).calls

    assert ("group", 2) in [
        (each.kind, each.line) for each in found if each.file == str(tmp_path / "services.py")
    ]
    assert not any("site-packages" in each.file for each in found)
