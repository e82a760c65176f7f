"""The app of docs/howto/own-apps.md does what the page says, and the page shows its code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs/howto/own-apps.md"
FILES = ("apps.py", "models.py", "feature.py", "admin.py")
SECONDS = 120.0


def test_app_adds_all_that_the_page_says(empty_database: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.deliveries.use"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": empty_database,
            "DJANGO_SETTINGS_MODULE": "tests.deliveries.settings",
            "OPTIONAL_APPS": "alerts http",
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]

    assert json.loads(done.stdout.splitlines()[-1]) == {
        "carrier": {"carrier": "van"},
        "refused": "carrier='plane' of tests.by_plane: it must be 'bike' or 'van'",
        "problem": "late deliveries: acme/1",
        "remedy": "Send another van.",
        "alerts": ["acme/1"],
        "linked": True,
        "panel": True,
        "panel_of_viewer": False,
        "panel_of_limited": True,
        "fact": True,
        "fact_of_viewer": False,
        "reminded": True,
        "duty": True,
        "left": 0,
    }


def test_page_shows_the_code_of_the_app() -> None:
    files = [(HERE / name).read_text() for name in FILES]
    blocks = re.findall(r"```python\n(.*?)\n```", PAGE.read_text(), re.S)

    assert len(blocks) >= 5
    for block in blocks:
        assert any(block in text for text in files), block


def test_app_is_small() -> None:
    assert sum(len((HERE / name).read_text().splitlines()) for name in FILES) < 150
