"""Take the documentation's pictures of the admin from a running demo: ``make screenshots``.

Starts the demo with a database of its own, has a queue paused and a report fail, waits until the
lists are filled, and writes docs/images/<name>.png. Needs Chromium.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1280, 720
FILL_SECONDS = 45.0
ADMIN = "admin/tenantqueue/"


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: the page, what to click or wait for there, and how much of it to show."""

    name: str
    path: str
    click: str = ""
    wait_for: str = ""
    height: int = HEIGHT


PICTURES = (
    Picture("home", ADMIN, height=1100),
    Picture("queues", f"{ADMIN}tenantqueue/"),
    Picture("jobs", f"{ADMIN}job/"),
    Picture("job", f"{ADMIN}job/?state=error", "#result_list tbody th a", height=900),
    Picture("failures", f"{ADMIN}job/failures/"),
    Picture("monitors", f"{ADMIN}concurrentjobmonitor/"),
    Picture("sessions", f"{ADMIN}session/"),
    Picture("workers", f"{ADMIN}worker/"),
    Picture("duties", f"{ADMIN}duty/"),
    Picture("site", "UA/", height=900),
)


@contextmanager
def demo(data_dir: Path) -> Iterator[tuple[str, str]]:
    """Run the demo; yield the address of its site and the administrator's password."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-u", "-m", "example_project.demo", "--port=0", "--load=normal"),
            f"--data-dir={data_dir}",
        ],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Stop with CTRL-C" in line:
                break
        site = re.search(r"http://\S+:\d+/", said)
        password = re.search(r"password (\S+)", said)
        if site is None or password is None:
            raise SystemExit(f"error: the demo did not start:\n{said}")
        yield site[0], password[1]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=90)


@contextmanager
def place_for_data() -> Iterator[Path]:
    """Yield a directory that the server's account, which may be another, can enter."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield Path(place)


def log_in(page: Page, site: str, password: str) -> None:
    """Log in as the demo's administrator."""
    page.goto(f"{site}admin/login/?next=/admin/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", password)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/")


def pause_a_queue(page: Page, site: str) -> None:
    """Pause the first queue, as an operator would, so that the list shows one."""
    page.goto(f"{site}{ADMIN}tenantqueue/")
    page.check("#id_form-0-paused")
    page.click("input[name=_save]")
    page.wait_for_selector(".messagelist")


def request_reports(page: Page, site: str) -> None:
    """Request some reports, as a customer would; the last one takes seconds."""
    for name in ("worst_days", "route_delays", "knock_on"):
        page.goto(f"{site}UA/")
        page.locator(f"form[action$='/{name}/'] button").click()
        page.wait_for_url("**/jobs/*/")


def take(page: Page, site: str, picture: Picture) -> None:
    """Write one picture."""
    page.set_viewport_size({"width": WIDTH, "height": picture.height})
    page.goto(f"{site}{picture.path}")
    if picture.click:
        page.locator(picture.click).first.click()
        page.wait_for_load_state()
    if picture.wait_for:
        page.wait_for_selector(picture.wait_for)
    page.screenshot(path=IMAGES / f"{picture.name}.png")
    print(f"docs/images/{picture.name}.png")


def main() -> None:
    """Take all pictures."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise SystemExit(f"error: no browser: install one of {', '.join(PROGRAMS)}")
    IMAGES.mkdir(exist_ok=True)
    with (
        place_for_data() as place,
        demo(place) as (site, password),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(color_scheme="light")
        log_in(page, site, password)
        pause_a_queue(page, site)
        time.sleep(FILL_SECONDS)
        for picture in PICTURES:
            take(page, site, picture)
        request_reports(page, site)
        moving = "[data-state=running] progress[value]:not([value='0'])"
        take(page, site, Picture("progress", "UA/yours/", wait_for=moving, height=480))
        browser.close()


if __name__ == "__main__":
    main()
