"""Times and durations as operators read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from django_tenantqueue.admin import formats

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (-3.0, "0 ms"),
        (0.0123, "12 ms"),
        (0.9996, "1 s"),
        (1.24, "1.2 s"),
        (59.97, "1 min 0 s"),
        (184, "3 min 4 s"),
        (3600 * 2 + 300, "2 h 5 min"),
        (86400 * 2 + 3 * 3600, "2 d 3 h"),
    ],
)
def test_duration_text(seconds: float | None, text: str) -> None:
    assert formats.duration_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "now"),
        (59, "59 s ago"),
        (61, "1 min ago"),
        (7300, "2 h ago"),
        (90000, "1 d ago"),
        (-65, "in 1 min 5 s"),
    ],
)
def test_moment_text(seconds: float, text: str) -> None:
    assert formats.moment_text(NOW - timedelta(seconds=seconds), NOW) == text


def test_moment_has_the_exact_time_as_its_tooltip() -> None:
    shown = formats.moment(NOW - timedelta(minutes=3), NOW)

    assert 'title="2026-03-01 11:57:00.000 UTC"' in shown
    assert ">3 min ago<" in shown
    assert formats.moment(None) == "–"


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (999, "999"), (1000, "1000+")])
def test_counted(number: int, text: str) -> None:
    assert formats.counted(number, 1000) == text


def test_names_are_escaped_and_may_be_broken() -> None:
    assert formats.breakable("app.do_<it>") == "app.<wbr>do_<wbr>&lt;it&gt;"


def test_ongoing_tells_since_when() -> None:
    shown = formats.ongoing(timedelta(seconds=125), "runs")

    assert 'title="runs: 2 min 5 s"' in shown
    assert ">2 min…<" in shown


def test_unknown_states_are_shown_as_they_are() -> None:
    assert ">odd<" in formats.state_badge("odd")


def test_json_that_cannot_be_encoded_is_shown_as_text() -> None:
    assert str(timezone.now().year) in formats.json_text({"at": timezone.now()})


@pytest.mark.parametrize(("percent", "text"), [(99.91, "99 %"), (100.0, "100 %"), (0.4, "0 %")])
def test_bar_says_100_percent_at_the_end_alone(percent: float, text: str) -> None:
    assert str(formats.progress_bar(percent)).endswith(f"> {text}</span>")
