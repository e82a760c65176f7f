"""Find a Chromium, or get one, for the tests in a browser."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PLAYWRIGHT_SECONDS = 120.0
APT_SECONDS = 300.0
STAMP = Path(sys.prefix) / "no-chromium"
"""Says that none could be had: it is not tried again until `make clean`."""
ADVICE = "install Chromium: apt-get install chromium, or python -m playwright install chromium"


def find_chromium() -> str | None:
    """Return the path of a Chromium of this machine, or None."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is not None:
        return found
    cache = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache/ms-playwright"
    own = sorted(Path(cache).glob("chromium-*/chrome-linux*/chrome"))
    return str(own[-1]) if own else None


def get_chromium() -> str | None:
    """Return the path of a Chromium, installed if need be; None: none can be had."""
    found = find_chromium()
    if found is not None or STAMP.exists():
        return found
    with STAMP.with_suffix(".lock").open("w") as lock:  # tests side by side install it once
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = find_chromium()
        if found is not None or STAMP.exists():
            return found
        for command, seconds in _commands():
            if _succeeds(command, seconds) and (found := find_chromium()) is not None:
                return found
        STAMP.touch()
    return None


def _commands() -> list[tuple[list[str], float]]:
    commands = [([sys.executable, "-m", "playwright", "install", "chromium"], PLAYWRIGHT_SECONDS)]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        packages = ["chromium", "fonts-liberation"]
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        commands += [(["apt-get", "update", "-qq"], APT_SECONDS), (install, APT_SECONDS)]
    return commands


def _succeeds(command: list[str], seconds: float) -> bool:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
