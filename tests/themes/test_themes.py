"""Admin themes: each page opens on a site with one of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .settings import THEMES

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 180.0


@pytest.mark.parametrize("theme", THEMES)
def test_every_page_opens_with_a_theme(theme: str, empty_database: str) -> None:
    if theme == "unfold" and sys.version_info < (3, 12):
        pytest.skip("Python 3.12 is the oldest that django-unfold supports")
    missing = [app for app in THEMES[theme] if find_spec(app) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    walked = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.themes.walk"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": empty_database,
            "DJANGO_SETTINGS_MODULE": "tests.themes.settings",
            "ADMIN_THEME": theme,
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert walked.returncode == 0, walked.stderr[-3000:]
    found = json.loads(walked.stdout)

    assert found["failed"] == []
    assert found["without_rows"] == []
    assert min(found["opened"]) > 50
