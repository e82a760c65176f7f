"""Where the tests in a browser look for one, and what they do to get one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from . import chromium


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Let the machine have no browser, and no command succeed; return the commands tried."""
    tried: list[list[str]] = []

    def fail(command: list[str], _: float) -> bool:
        tried.append(command)
        return False

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    monkeypatch.setattr(chromium, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(chromium, "_succeeds", fail)
    return tried


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_program_of_the_path_is_taken(bare: Any, tmp_path: Path) -> None:
    made = program(tmp_path / "chromium-browser")

    assert chromium.get_chromium() == str(made)
    assert bare == []


def test_browser_of_playwright_is_taken(bare: Any, tmp_path: Path) -> None:
    made = program(tmp_path / "browsers/chromium-1200/chrome-linux/chrome")

    assert chromium.get_chromium() == str(made)


def test_it_is_installed_when_there_is_none(
    bare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(command: list[str], _: float) -> bool:
        program(tmp_path / "chromium")
        return True

    monkeypatch.setattr(chromium, "_succeeds", install)

    assert chromium.get_chromium() == str(tmp_path / "chromium")


def test_it_is_tried_once_when_none_can_be_had(bare: Any) -> None:
    assert chromium.get_chromium() is None
    assert [command[1:] for command in bare] == [["-m", "playwright", "install", "chromium"]]

    assert chromium.get_chromium() is None
    assert len(bare) == 1


def test_debians_package_is_tried_by_root(
    bare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "apt-get")
    monkeypatch.setattr("os.geteuid", lambda: 0)

    assert chromium.get_chromium() is None
    assert [command[:2] for command in bare[1:]] == [["apt-get", "update"], ["apt-get", "install"]]
