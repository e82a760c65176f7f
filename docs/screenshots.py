"""Take the documentation's pictures of the admin: ``make screenshots``.

Starts the demo with a database of its own and with troubles, waits until the lists are filled, and
writes docs/images/<name>.png. Pages that operators read on a phone are also written as
<name>-dark.jpg and <name>-420.jpg. The pictures of the tutorial are taken from its own project,
which tutorial_project.py makes. Names on the command line choose some. Needs Chromium.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from tutorial_project import tutorial

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WIDE, NARROW = 1400, 420
HEIGHT = 1000
"""Pixels of a page that a picture shows at most."""
FILL_SECONDS = 80.0
"""A queue is late after a minute."""
ORDERED_SECONDS = 12.0
"""Then some rows of the ordered reports are done, and the workers have reported."""
SHORTEN = """root => document.querySelectorAll("pre").forEach(
    pre => { if (pre.textContent.includes(root))
        pre.textContent = pre.textContent.replaceAll(root, ""); }
)"""
"""Leaves this machine's directories out of tracebacks."""
ADMIN = "admin/tenantqueue/"
FIRST = "#result_list tbody th a"


def ask_about_all(page: Page) -> None:
    """Ask for a retry of all jobs that match."""
    page.check("#action-toggle")
    page.click("text=Select all that match")
    page.select_option("select[name=action]", "retry_selected")
    page.click("button[name=index]")


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: the page, what leads on from there, and how much of the last one to show.

    `steps` are links to click, or functions to call. `is_varied`: it is also taken in a dark color
    scheme, and at the width of a phone.
    """

    name: str
    path: str
    steps: tuple[str | Callable[[Page], None], ...] = ()
    wait_for: str = "#content"
    height: int = HEIGHT
    is_varied: bool = False


FAILED = f"{ADMIN}job/?state=error&task=example_project.flights.tasks.carbon_cost"
SEAT = (
    Picture("home", ADMIN, height=1400, is_varied=True),
    Picture("failures", f"{ADMIN}job/failures/"),
    Picture("failure-group", f"{ADMIN}job/failures/", (".tq-groups tbody th a",)),
    Picture("queues", f"{ADMIN}tenantqueue/", is_varied=True),
    Picture("queue", f"{ADMIN}tenantqueue/?q=AS", (f"{FIRST}:has-text('reports')",)),
    Picture(
        "history", f"{ADMIN}tenantqueue/?q=AS", (f"{FIRST}:has-text('reports')", ".historylink")
    ),
    Picture("jobs", f"{ADMIN}job/", is_varied=True),
    Picture("job", FAILED, (FIRST,), height=1200, is_varied=True),
    Picture("job-running", f"{ADMIN}job/?state=running&tenant=EV&queue=exports", (FIRST,)),
    Picture("job-waiting", f"{ADMIN}job/?state=held&tenant=EV&queue=exports", (FIRST,)),
    Picture("again", FAILED, (FIRST, "text=Enqueue again…")),
    Picture("sessions", f"{ADMIN}session/"),
    Picture("session", f"{ADMIN}session/", (f"{FIRST}:has-text('month-end')",)),
    Picture("monitors", f"{ADMIN}concurrentjobmonitor/"),
    Picture(
        "monitor",
        f"{ADMIN}concurrentjobmonitor/",
        ("#result_list a:has-text('Flights for the airports')",),
        height=1400,
    ),
    Picture("user-limits", f"{ADMIN}userlimit/"),
    Picture("task-controls", f"{ADMIN}taskcontrol/"),
    Picture("workers", f"{ADMIN}worker/"),
    Picture("worker", f"{ADMIN}worker/", (FIRST,)),
    Picture("schedules", "admin/tenantqueue_schedules/schedule/"),
    Picture("schedule", "admin/tenantqueue_schedules/schedule/", (FIRST,), height=1200),
    Picture("alerts", "admin/tenantqueue_alerts/alert/"),
    Picture("alert-rules", "admin/tenantqueue_alerts/alertrule/"),
    Picture("alert-rule", "admin/tenantqueue_alerts/alertrule/", (FIRST,), height=1400),
    Picture("retention-rules", "admin/tenantqueue_retention/retentionrule/"),
    Picture("routings", "admin/tenantqueue_routing/routing/"),
    Picture("api-tokens", "admin/tenantqueue_api/apitoken/"),
    Picture("api-token", "admin/tenantqueue_api/apitoken/", (FIRST,)),
    Picture("duties", f"{ADMIN}duty/"),
    Picture("changes", f"{ADMIN}change/"),
    Picture("bulk", FAILED, (ask_about_all,)),
    Picture(
        "bulk-job",
        FAILED,
        (ask_about_all, "input[type=submit].default"),
        wait_for="text=/\\d jobs changed/",
    ),
)
"""The pages of the admin, in the order in which they are visited: the last one changes things."""
MOVING = "[data-state=running] progress[value]:not([value='0'])"
PRODUCT = (Picture("progress", "UA/yours/", wait_for=MOVING, height=600),)
"""Pages of the demo's product."""
TUTORIAL = (
    Picture("tutorial-job", f"{ADMIN}job/1/change/", height=900),
    Picture("tutorial-queues", f"{ADMIN}tenantqueue/", height=500),
    Picture("tutorial-dashboard", ADMIN, height=900),
)
"""Pages of the tutorial's project: after its step 6, and in step 7."""


@contextmanager
def demo(data_dir: Path) -> Iterator[tuple[str, str]]:
    """Run the demo; yield the address of its site and the administrator's password."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-u", "-m", "example_project.demo", "--port=0", "--troubles"),
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


def tune_a_queue(page: Page, site: str) -> None:
    """Edit a queue in the list, as an operator would, so that its history shows it."""
    page.goto(f"{site}{ADMIN}tenantqueue/?q=AS")
    row = page.locator("#result_list tbody tr", has_text="reports")
    row.locator(".field-weight input[type=number]").fill("3")
    page.click("input[name=_save]")
    page.wait_for_selector(".messagelist")


def add_rows(page: Page, site: str) -> None:
    """Add a routing and a token, as an operator would."""
    rows = (
        (
            "tenantqueue_routing/routing",
            {"tenant": "UA", "pattern": "imports.*", "queue": "reports"},
        ),
        (
            "tenantqueue_api/apitoken",
            {"name": "crew planning", "tenant": "UA", "requests_per_minute": "600"},
        ),
    )
    for model, values in rows:
        page.goto(f"{site}admin/{model}/add/")
        for name, value in values.items():
            page.fill(f"#content-main [name={name}]", value)
        with page.expect_navigation():
            page.click("input[name=_save]")


def lift_the_cap(page: Page, site: str) -> None:
    """Let the task run freely that is capped: the customer's heavy report is one of it."""
    page.goto(f"{site}{ADMIN}taskcontrol/")
    page.fill("#result_list .field-num_slots input[type=number]", "")
    page.click("input[name=_save]")
    page.wait_for_selector(".messagelist")


def request_reports(page: Page, site: str) -> None:
    """Request some reports, as a customer would; the last one takes seconds."""
    for name in ("worst_days", "route_delays", "knock_on"):
        page.goto(f"{site}UA/")
        page.locator(f"form[action$='/{name}/'] button").click()
        page.wait_for_url("**/jobs/*/")


def open_page(page: Page, site: str, picture: Picture) -> None:
    """Go where the picture is taken."""
    page.set_viewport_size({"width": WIDE, "height": HEIGHT})
    page.goto(f"{site}{picture.path}")
    for step in picture.steps:
        with page.expect_navigation():
            page.locator(step).first.click() if isinstance(step, str) else step(page)
    page.wait_for_selector(picture.wait_for)
    page.evaluate(SHORTEN, f"{ROOT}/")


def take(page: Page, picture: Picture, name: str, width: int = WIDE, scheme: str = "light") -> None:
    """Write one picture of the page that is open."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": HEIGHT})
    height = min(picture.height, int(page.evaluate("document.documentElement.scrollHeight")))
    page.screenshot(
        path=IMAGES / name,
        full_page=True,
        animations="disabled",
        clip={"x": 0, "y": 0, "width": width, "height": height},
        **({} if name.endswith(".png") else {"type": "jpeg", "quality": 60}),
    )
    print(f"docs/images/{name}", flush=True)


def take_all(page: Page, picture: Picture) -> None:
    """Write the pictures of the page that is open."""
    take(page, picture, f"{picture.name}.png")
    if picture.is_varied:
        take(page, picture, f"{picture.name}-dark.jpg", scheme="dark")
        take(page, picture, f"{picture.name}-420.jpg", NARROW)
        page.emulate_media(color_scheme="light")


def take_demo(page: Page, chosen: Callable[[Picture], bool]) -> None:
    """Take the pictures of the demo."""
    with place_for_data() as place, demo(place) as (site, password):
        log_in(page, site, password)
        tune_a_queue(page, site)
        add_rows(page, site)
        time.sleep(FILL_SECONDS)
        for picture in filter(chosen, SEAT):
            open_page(page, site, picture)
            take_all(page, picture)
        lift_the_cap(page, site)
        request_reports(page, site)
        for picture in filter(chosen, PRODUCT):
            open_page(page, site, picture)
            take_all(page, picture)


def take_tutorial(page: Page, chosen: Callable[[Picture], bool]) -> None:
    """Follow the tutorial, and take its pictures."""
    with place_for_data() as place, tutorial(place) as (site, password):
        log_in(page, site, password)
        for number, picture in enumerate(TUTORIAL):
            if number == 1:
                order_more(page, site)
            open_page(page, site, picture)
            if chosen(picture):
                take_all(page, picture)


def order_more(page: Page, site: str) -> None:
    """Order what step 7 of the tutorial orders, and wait until some of it runs."""
    for tenant in [*("acme",) * 10, "globex"]:
        page.request.get(f"{site}order/{tenant}/300/")
    time.sleep(ORDERED_SECONDS)


def main(names: list[str]) -> None:
    """Take the pictures of these names; without names, all."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise SystemExit(f"error: no browser: install one of {', '.join(PROGRAMS)}")
    IMAGES.mkdir(exist_ok=True)

    def chosen(picture: Picture) -> bool:
        return not names or picture.name in names

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(color_scheme="light")
        if any(map(chosen, (*SEAT, *PRODUCT))):
            take_demo(page, chosen)
        if any(map(chosen, TUTORIAL)):
            take_tutorial(page, chosen)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
