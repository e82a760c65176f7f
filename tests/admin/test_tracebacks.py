"""Tracebacks on the page of a job: whose frames are folded, and what is shown as it is."""

from __future__ import annotations

import pytest
from django.test import Client

from django_tenantqueue.models import Job
from django_tenantqueue.states import State
from django_tenantqueue.testing import run_pending
from django_tenantqueue.tracebacks import Part, folded
from tests.factories import make_job
from tests.testapp.tasks import fail

from .conftest import text_of, url_of

HEAD = "Traceback (most recent call last):"


def frame(file: str, code: str = "call()") -> str:
    return f'  File "{file}", line 7, in run\n    {code}\n    ^^^^^^'


OURS = "/srv/venv/lib/python3.13/site-packages/django_tenantqueue/execution/run.py"
WINDOWS = "C:\\venv\\Lib\\site-packages\\django_tenantqueue\\worker\\child\\executors.py"
POOL = "/usr/lib/python3.13/concurrent/futures/thread.py"
USER = "/srv/shop/tasks.py"
NEAR = "/srv/django_tenantqueue/shop/tasks.py"


def trace(*files: str, end: str = "ValueError: no") -> str:
    return "\n".join([HEAD, *map(frame, files), end, ""])


def shape(text: str) -> list[int]:
    """Return the number of folded frames of each part; 0 for what is shown."""
    parts = folded(text)
    assert "\n".join(part.text for part in parts) == text, "nothing is lost"
    return [part.frames for part in parts]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((OURS, POOL, OURS, USER, USER), [0, 3, 0]),
        ((POOL, OURS, USER), [0, 2, 0]),
        ((OURS, USER, WINDOWS), [0, 1, 0, 1, 0]),
        ((USER, POOL, USER), [0]),  # a pool of the task's own
        ((OURS, NEAR, USER), [0, 1, 0]),  # a project that has our name
        ((OURS,), [0, 1, 0]),
        ((), [0]),
    ],
)
def test_frames_of_the_worker_are_folded(files: tuple[str, ...], expected: list[int]) -> None:
    assert shape(trace(*files)) == expected


def test_each_stack_of_a_chain_is_folded() -> None:
    chained = (
        trace(OURS, USER)
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + trace(OURS, OURS, USER)
    )

    assert shape(chained) == [0, 1, 0, 2, 0]


def test_repeated_lines_belong_to_their_frame() -> None:
    text = f"{HEAD}\n{frame(OURS)}\n  [Previous line repeated 3 more times]\n{frame(USER)}\nE: x"

    first, ours, _rest = folded(text)
    assert first == Part(HEAD)
    assert ours.text.endswith("3 more times]")
    assert ours.label == "1 frame of the worker"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no traceback at all",
        frame(OURS),  # without its head
        f'  + Exception Group {HEAD}\n  |   File "{OURS}", line 1, in run\n  | E: x',
        f"ValueError: a message with\n{frame(OURS)}\nin it",
        f"{HEAD}\n… 900 characters left out …\n{frame(OURS)}",
    ],
)
def test_what_cannot_be_read_is_shown_as_it_is(text: str) -> None:
    assert folded(text) == [Part(text)]


@pytest.mark.django_db(transaction=True)
def test_page_shows_the_frames_of_the_task_and_folds_ours(admin_client: Client) -> None:
    job = fail.using(max_attempts=1).delay()
    run_pending()

    content = admin_client.get(url_of("job", "change", job.pk)).content.decode()

    stored = Job.objects.get(pk=job.pk).errors[0]["traceback"]
    assert "execution/run.py" in stored
    before, after = content.split('class="tq-frames"', 1)
    assert "frame" in after.partition("</summary>")[0]
    assert "execution/run.py" in after.partition("</details>")[0]
    assert "execution/run.py" not in before
    assert "testapp/tasks.py" in after.partition("</details>")[2]


@pytest.mark.django_db
def test_newest_error_is_open_and_hostile_texts_are_escaped(admin_client: Client) -> None:
    evil = '"><script>alert(1)</script>'
    errors = [
        {
            "at": f"2026-03-01T12:00:0{number}+00:00{evil}",
            "attempt": f"{number}{evil}",
            "class": evil,
            "message": f"{evil}\nline {number}",
            "traceback": trace(OURS, evil, end=evil),
        }
        for number in (1, 2)
    ]
    job = make_job(state=State.ERROR, errors=[*errors, {"traceback": None}, "nonsense"])

    response = admin_client.get(url_of("job", "change", job.pk))

    content = response.content.decode()
    assert "<script>alert" not in content
    assert content.count('<details class="tq-failure"') == 3
    opened = [part.partition(">")[0] for part in content.split('<details class="tq-failure"')[1:]]
    assert [part.endswith(" open") for part in opened] == [True, False, False]
    assert text_of(response).index("line 2") < text_of(response).index("line 1")
