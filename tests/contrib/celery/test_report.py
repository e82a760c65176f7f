"""`manage.py tenantqueue celery-report` lists the lines of a project that touch Celery."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from django_tenantqueue.contrib.celery.report import Report, make_report, project_files
from django_tenantqueue.contrib.celery.report_names import SECTIONS, TABLES, anchor

ROOT = Path(__file__).parents[3]
PROJECT = ROOT / "tests/celery_project"


def run(*arguments: str, **environment: str) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DJANGO", "DATABASE"))}
    paths = os.pathsep.join((str(PROJECT), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=PROJECT,
        env={**kept, "PYTHONPATH": paths, "DJANGO_SETTINGS_MODULE": "shop.settings", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(*arguments: str) -> str:
    out = StringIO()
    call_command("tenantqueue", "celery-report", *arguments, stdout=out)
    return out.getvalue()


def read(folder: Path, code: str, **others: str) -> Report:
    """Return the report on a package `shop` with one task, `send`, and this code."""
    files = {"tasks": "from celery import shared_task\n@shared_task\ndef send(): ...", **others}
    (folder / "shop").mkdir(exist_ok=True)
    for name, text in {**files, "__init__": "", "code": code}.items():
        (folder / f"shop/{name}.py").write_text(text)
    return make_report(project_files([folder]))


def found(report: Report) -> dict[tuple[str, str], list[str]]:
    """Return the warnings of each section and line of the code, without those of imports."""
    return {
        (section, line.code): line.warnings
        for section, lines in report.sections.items()
        for line in lines
        if line.file.endswith("code.py") and not line.code.startswith(("from ", "import "))
    }


def test_project_works_with_celery_alone(tmp_path: Path) -> None:
    told = json.loads(run("try_it.py", SHOP_EAGER="1", SHOP_DATA=str(tmp_path)))

    assert told["answers"]["/orders/3/invoice/"] == {"order": 3, "total": 300}
    assert told["answers"]["/images/cat/resize/"] == {"names": ["cat-small.png", "cat-large.png"]}
    assert told["files"]["report-5"] == ["5/0", "5/1", "5/2", "5/3"]
    assert told["files"]["words-terms"] == ["words", "of", "https://example.com/terms"]
    assert set(told["files"]) - set(told["after"]) == {"welcome-7"}


def test_each_line_of_the_project_that_touches_celery_is_listed() -> None:
    report: dict[str, Any] = json.loads(printed(str(PROJECT), "--format=json"))

    words = re.compile(
        r"celery|shared_task|Counted|\.delay\(|apply_async|\bresults?\.(get|id|state)|self\.re"
        r"|update_state|SoftTime|crontab|on_commit|AsyncResult|chord\(|group\(|chain\(|def on_",
        re.I,
    )
    every = [line for lines in report["sections"].values() for line in lines]
    listed = {(line["file"], line["line"]) for line in every}
    for path in PROJECT.rglob("shop/*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if words.search(line) and not line.startswith(('"""', "celery -A", "__all__")):
                assert (str(path), number) in listed, f"{path}:{number} {line}"
    assert report["untold"] == report["unread"] == []


def test_each_section_is_a_heading_of_the_guide() -> None:
    page = (ROOT / "docs/howto/coming-from-celery.md").read_text()
    text = printed(str(PROJECT))

    for section, title in SECTIONS.items():
        assert f"\n## {title}\n" in page
        used = {entry[0] for table in TABLES.values() for entry in table.values()}
        assert section in used
        assert anchor(section).endswith(re.sub(r"[ ,]+", "-", title.lower()))
    assert {line.partition(":")[0] for line in text.splitlines() if ".md#" in line} <= {
        *SECTIONS.values()
    }


def test_example_of_the_reference_is_what_the_command_prints(monkeypatch) -> None:
    monkeypatch.chdir(PROJECT)
    page = (ROOT / "docs/reference/commands.md").read_text()
    shown = r"```text\n\$ manage\.py tenantqueue celery-report shop\n(.*?)```"
    (example,) = re.findall(shown, page, re.S)
    lines = iter(printed("shop").splitlines())

    for line in example.splitlines():
        assert line in ("…", "") or line in lines, line  # in this order


IMPORTS = """
import celery
from functools import partial
from celery import Celery, chain, chord, group, current_app, signals
from celery.result import AsyncResult
from celery.schedules import crontab, solar
from django.db import transaction
from .tasks import send
from . import tasks
app = Celery("shop")
result = send.delay()
def begin():
    return send.delay(1)
"""


@pytest.mark.parametrize(
    ("section", "code", "warning"),
    [
        ("app", "app.autodiscover_tasks()", ""),
        ("app", "app.conf.timezone = 'UTC'", ""),
        ("app", "CELERY_BROKER_URL = 'redis://'", ""),
        ("tasks", "@app.task", ""),
        ("tasks", "@celery.shared_task(acks_late=True)", "a run whose worker dies"),
        ("tasks", "@app.task(max_retries=3)", "max_attempts counts the first run"),
        ("tasks", "@app.task(once=True)", "once: not supported"),
        ("tasks", "send.retry(args=[1])", "the next attempt has the arguments of this one"),
        ("calls", "tasks.send.delay(1)", ""),
        ("calls", "send.apply_async((1,), priority=3)", "a lower number runs first"),
        ("calls", "send.apply_async(headers={})", "not supported"),
        ("calls", "send.delay_on_commit(1)", "needs no on_commit()"),
        ("calls", "transaction.on_commit(partial(send.delay, 1))", "needs no on_commit()"),
        ("calls", "transaction.on_commit(lambda: send.delay(1))", "needs no on_commit()"),
        ("calls", "app.send_task('shop.tasks.send')", "must be importable"),
        ("calls", "send.apply()", "at once in this process"),
        ("results", "result.get(timeout=3)", "does not raise"),
        ("results", "result.wait()", "does not raise"),
        ("results", "send.delay(1).get()", "does not raise"),
        ("results", "begin().get()", "does not raise"),
        ("results", "group([send.s()])().join()", "does not raise"),
        ("results", "AsyncResult(3).ready()", ""),
        ("results", "celery.result.AsyncResult(3)", ""),
        ("results", "send.update_state(state='X')", ""),
        ("results", "CELERY_RESULT_EXPIRES = 3", "until retention"),
        ("limits", "@app.task(time_limit=3)", "is repeated while attempts are left"),
        ("limits", "app.conf.update(task_routes={})", ""),
        ("hooks", "@signals.task_failure.connect", "not sent when a worker process dies"),
        ("hooks", "@app.task(base=None)", ""),
        ("canvas", "chain(send.s(), send.si(1))()", "only where Placeholder asks"),
        ("canvas", "chord([send.s()], body=send.s())", "runs after failed jobs, too"),
        ("canvas", "send.s(1).apply_async(link=send.s())", ""),
        ("canvas", "send.apply_async(link_error=send.s())", "after a success, too"),
        ("canvas", "send.chunks(rows, 10)", "not supported"),
        ("schedules", "x = crontab(day_of_month=1, day_of_week=1)", "both days must match"),
        ("schedules", "x = solar('sunset')", "solar schedules are not supported"),
        ("schedules", "app.add_periodic_task(3, send.s())", ""),
        ("schedules", "app.conf.beat_schedule = {}", ""),
        ("schedules", "INSTALLED_APPS = ['django_celery_beat']", ""),
        ("workers", "CELERY_WORKER_CONCURRENCY = 3", ""),
        ("monitoring", "app.control.inspect().ping()", ""),
        ("monitoring", "current_app.control.revoke(3, terminate=True)", ""),
        ("monitoring", "result.revoke()", ""),
        ("tests", "override_settings(CELERY_TASK_ALWAYS_EAGER=True)", ""),
        ("tests", "mock.patch('shop.code.send.delay')", "a job of a test is a row"),
    ],
)
def test_line_is_listed_in_its_section(
    tmp_path: Path, section: str, code: str, warning: str
) -> None:
    rest = "\ndef other(): ..." if code.startswith("@") else ""

    warnings = found(read(tmp_path, f"{IMPORTS}{code}{rest}"))[section, code]

    assert warning in "; ".join(warnings)
    assert warning or not warnings


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("monitoring", "from sentry_sdk.integrations.celery import CeleryIntegration"),
        ("monitoring", "import flower"),
        ("schedules", "from django_celery_beat.models import PeriodicTask"),
        ("limits", "from kombu import Queue"),
        ("tests", "from celery.contrib.testing import app"),
    ],
)
def test_import_is_listed_in_its_section(tmp_path: Path, section: str, line: str) -> None:
    assert line in [each.code for each in read(tmp_path, line).sections[section]]


def test_what_a_bound_task_does_with_itself_is_listed(tmp_path: Path) -> None:
    code = (
        "from celery import Task, shared_task\n"
        "class Watched(Task):\n"
        "    max_retries = 3\n"
        "    def on_failure(self, *args):\n"
        "        print(self.request.id)\n"
        "@shared_task(bind=True, base=Watched)\n"
        "def other(me):\n"
        "    if me.request.retries: me.retry(max_retries=3)\n"
    )

    listed = found(read(tmp_path, code))

    assert ("hooks", "class Watched(Task):") in listed
    assert ("hooks", "def on_failure(self, *args):") in listed
    assert ("tasks", "max_retries = 3") in listed
    assert listed["tasks", "print(self.request.id)"] == ["an id is a number"]
    assert listed["tasks", "if me.request.retries: me.retry(max_retries=3)"] == [
        "attempt counts the first run, retries does not",
        "it belongs to the task, and max_attempts counts the first run",
    ]


@pytest.mark.parametrize(
    "code",
    [
        "request.GET.get('x'); {}.get(1); cache.get('y')",
        "from itertools import chain\nchain(a, b)",
        "from .models import group\ngroup.s()",
        "cache.set('x', 1, timeout=3)",
        "def f(result):\n    return result.state, result.get('x')",
        "class Form:\n    def on_failure(self):\n        return self.request.id",
        "a | b; session.retry(); text.signature(); app.task",
        "result = send\nresult = {}\nresult.get('x')",
    ],
)
def test_what_only_looks_like_celery_is_not_listed(tmp_path: Path, code: str) -> None:
    report = read(tmp_path, f"# task\n{code}", models="")

    assert found(report) == {}
    assert report.untold == []


def test_lines_that_cannot_be_told_are_at_the_end(tmp_path: Path) -> None:
    code = "import celery\ndef f(task, r):\n    task.delay(1)\n    r.get(timeout=3)\n    r.get(3)\n"

    assert [line.line for line in read(tmp_path, code).untold] == [3, 4]
    assert "2 lines may use a task or its result" in printed(str(tmp_path))


def test_app_is_known_through_other_modules_and_namespaces(tmp_path: Path) -> None:
    made = "from celery import Celery\nclass Own(Celery): ...\napp = Own[int]('x')\n"
    made += "app.config_from_object('x', namespace='QUEUE')"
    code = "from .celery import app as own\nfrom missing.celery import app\n"
    code += "@own.task\ndef a(): ...\n@app.task\ndef b(): ...\nQUEUE_BEAT_SCHEDULE = {}\n"
    code += "a.delay(); b.delay()"

    listed = found(read(tmp_path, code, celery=made))

    assert {("tasks", "@own.task"), ("tasks", "@app.task")} <= set(listed)
    assert ("schedules", "QUEUE_BEAT_SCHEDULE = {}") in listed
    assert ("calls", "a.delay(); b.delay()") in listed


def test_nothing_is_imported_and_environments_are_not_read(tmp_path: Path) -> None:
    for folder in (".venv", "lib/site-packages"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "other.py").write_text("import celery")
    report = read(tmp_path, "import celery\nraise SystemExit")

    files = {line.file for lines in report.sections.values() for line in lines}
    assert {Path(file).name for file in files} == {"tasks.py", "code.py"}


def test_file_that_is_no_python_is_named(tmp_path: Path) -> None:
    read(tmp_path, "print 'task'")

    assert "! could not be read: " in printed(str(tmp_path))


def test_path_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(CommandError, match="'/nowhere' does not exist") as raised:
        call_command("tenantqueue", "celery-report", "/nowhere")
    assert raised.value.returncode == 2
