"""The demo as a visitor, an operator and a shell see it."""

import html
import http.cookiejar
import json
import re
import shutil
import signal
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from example_project.postgres import Cluster

from .conftest import Demo, run_demo
from .test_once import Once


class Browser:
    """Keeps cookies and sends the CSRF token, as a browser would."""

    def __init__(self, site: str) -> None:
        self.site = site
        self.cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def get(self, path: str) -> tuple[int, str]:
        return self._open(urllib.request.Request(urllib.parse.urljoin(self.site, path)))

    def post(self, path: str, accept: str = "text/html", **data: Any) -> tuple[int, str]:
        token = next((cookie.value for cookie in self.cookies if cookie.name == "csrftoken"), "")
        request = urllib.request.Request(
            urllib.parse.urljoin(self.site, path),
            data=urllib.parse.urlencode(data).encode(),
            headers={"X-CSRFToken": token or "", "Accept": accept, "Referer": self.site},
        )
        return self._open(request)

    def _open(self, request: urllib.request.Request) -> tuple[int, str]:
        try:
            with self._opener.open(request, timeout=20) as answer:
                self.url = answer.url
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def request(self, airline: str, report: str, **data: Any) -> dict[str, Any]:
        """Request a report as a program does; return what it is told."""
        self.get(f"/{airline}/")
        status, text = self.post(f"/{airline}/reports/{report}/", "application/json", **data)
        assert status == 202, text
        told: dict[str, Any] = json.loads(text)
        return told

    def wait(self, status_url: str) -> dict[str, Any]:
        """Poll a job's status until it has ended."""
        end = time.monotonic() + 30
        while True:
            job: dict[str, Any] = json.loads(self.get(status_url)[1])
            if job["final"]:
                return job
            assert time.monotonic() < end, job
            time.sleep(0.1)


@pytest.fixture(scope="module")
def demo(once: Once) -> Iterator[Demo]:
    demo = Demo(once[0], "--load=light")
    yield demo
    if demo.process.poll() is None:
        demo.end(signal.SIGKILL)


@pytest.fixture
def browser(demo: Demo) -> Browser:
    return Browser(demo.site)


@pytest.mark.parametrize("path", ["/", "/overview/", "/UA/", "/UA/recent/", "/OO/"])
def test_page_answers_when_opened(browser: Browser, path: str) -> None:
    status, text = browser.get(path)

    assert status == 200
    assert 'class="slots"' in text


@pytest.mark.parametrize("name", ["style.css", "chart.js", "job.js", "refresh.js", "icon.svg"])
def test_static_file_answers_when_a_page_names_it(browser: Browser, name: str) -> None:
    assert browser.get(f"/static/flights/{name}")[0] == 200


@pytest.mark.parametrize("path", ["/ZZ/", "/UA/jobs/999999999/", "/UA/reports/", "/nothing/"])
def test_page_is_not_found_when_there_is_no_such_thing(browser: Browser, path: str) -> None:
    status, text = browser.get(path)

    assert status == 404
    assert "Page not found" in text


def test_result_is_shown_when_a_report_has_run(browser: Browser) -> None:
    told = browser.request("UA", "route_delays", month="7")

    job = browser.wait(told["status_url"])

    assert (job["id"], job["state"]) == (told["id"], "success")
    assert job["result"]["columns"][0] == {"label": "Route", "unit": "text"}
    assert job["progress"]["percent"] == 100
    status, text = browser.get(told["page_url"])
    assert status == 200
    assert "Month: July" in text
    status, text = browser.get("/UA/yours/")
    assert status == 200
    assert f'<a href="{told["page_url"]}">Details</a>' in text
    assert "Delays per route" in text


@pytest.mark.parametrize(
    "report",
    [
        *("punctuality", "worst_days", "weather_delays"),
        *("airport_ranking", "fleet_age", "carbon_cost", "knock_on"),
    ],
)
def test_every_report_succeeds_when_requested(browser: Browser, report: str) -> None:
    parameters = {
        "punctuality": {"tolerance": 15},
        "worst_days": {"days": 5},
        "weather_delays": {"measure": "rain"},
        "carbon_cost": {"outages": 0},
        "knock_on": {"hours": 24, "everyone": "on"},
    }
    told = browser.request("B6", report, **parameters.get(report, {}))

    job = browser.wait(told["status_url"])

    assert job["state"] == "success", job
    result = job["result"]
    assert all(len(row) == len(result["columns"]) for row in result["rows"])


def test_visitor_sees_the_job_when_the_form_is_sent(browser: Browser) -> None:
    browser.get("/DL/")

    status, text = browser.post("/DL/reports/worst_days/", days=5)

    assert status == 200
    assert re.search(r"/DL/jobs/\d+/$", browser.url)
    assert "Worst days" in text


def test_job_fails_for_good_when_the_airport_does_not_exist(browser: Browser) -> None:
    told = browser.request("UA", "route_delays", airport="xxx")

    job = browser.wait(told["status_url"])

    assert (job["state"], job["attempt"]) == ("error", 1)
    assert job["error"] == "There is no airport 'XXX'."


def test_job_is_retried_when_the_price_service_fails(browser: Browser) -> None:
    told = browser.request("UA", "carbon_cost", outages="2")

    job = browser.wait(told["status_url"])

    assert (job["state"], job["attempt"]) == ("success", 3)


def test_second_request_gets_the_first_job_while_that_is_on_its_way(browser: Browser) -> None:
    first = browser.request("HA", "carbon_cost", outages="9")  # it is retried for seconds
    second = browser.request("HA", "carbon_cost", outages="9")

    assert (second["id"], first["duplicate"], second["duplicate"]) == (first["id"], False, True)
    status, text = browser.post("/HA/reports/carbon_cost/", outages="9")
    assert status == 200
    assert "This report was already requested" in text


def test_logbooks_of_all_planes_are_written_and_summed_up(browser: Browser) -> None:
    browser.get("/MQ/")
    status, text = browser.post("/MQ/logbooks/")
    assert status == 200
    assert "Logbooks of the fleet" in text

    end = time.monotonic() + 60
    while (ended := re.search(r'<a href="(/MQ/jobs/\d+/)">(\d+) written', text)) is None:
        assert time.monotonic() < end, text
        time.sleep(0.2)
        text = browser.get("/MQ/recent/")[1]

    status_url = re.search(r'data-status-url="([^"]+)"', browser.get(ended[1])[1])
    assert status_url is not None
    job = browser.wait(html.unescape(status_url[1]))
    assert job["result"]["summary"].startswith(f"{ended[2]} logbooks")
    assert len(job["result"]["rows"]) == 15


def test_job_is_hidden_when_another_airline_asks(browser: Browser) -> None:
    told = browser.request("UA", "worst_days", days=5)

    assert browser.get(told["page_url"])[0] == 200
    assert browser.get(told["page_url"].replace("/UA/", "/DL/"))[0] == 404


def test_form_is_shown_again_when_a_parameter_is_wrong(browser: Browser) -> None:
    browser.get("/UA/")

    status, text = browser.post("/UA/reports/worst_days/", days=500)

    assert status == 400
    assert "less than or equal to 100" in text
    status, text = browser.post("/UA/reports/worst_days/", "application/json", days="")
    assert status == 400
    assert json.loads(text) == {"errors": {"days": ["This field is required."]}}


def test_request_is_refused_when_it_is_not_a_post(browser: Browser) -> None:
    assert browser.get("/UA/reports/worst_days/")[0] == 405


def test_slots_follow_when_the_operator_changes_the_plan(
    demo: Demo, browser: Browser, once: Once
) -> None:
    browser.get("/admin/login/")
    status, _ = browser.post("/admin/login/?next=/admin/", username="admin", password=demo.password)
    assert status == 200
    assert browser.url.endswith("/admin/")

    status, _ = browser.post("/admin/flights/airline/HA/change/", plan="enterprise")

    assert status == 200
    with psycopg.connect(once[0]) as connection:
        rows = connection.execute(
            "SELECT name, num_slots, weight FROM tenantqueue_tenantqueue "
            "WHERE tenant = 'HA' ORDER BY name"
        ).fetchall()
    assert rows == [("heavy", 2, 4), ("logbooks", 4, 4), ("reports", 5, 4)]
    for path in ("tenantqueue/tenantqueue/", "flights/reportrun/", "flights/batch/"):
        assert browser.get(f"/admin/{path}")[0] == 200


def test_nothing_is_left_when_interrupted(demo: Demo) -> None:
    assert demo.logs.is_dir()

    assert demo.end(signal.SIGINT) == 0

    assert "Stopped." in demo.said
    assert demo.left() == []
    assert not demo.logs.exists()


def test_port_is_named_when_it_is_in_use(once: Once) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = run_demo(once[0], f"--port={port}")

    assert done.returncode == 1
    assert f"error: Port {port} is in use" in done.stderr


@pytest.mark.heavy
def test_embedded_server_stops_when_the_demo_ends(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    place = f"--data-dir={tmp_path}"
    cluster = Cluster(tmp_path)
    try:
        done = run_demo(None, "--once", "--jobs=20", "--flights=500", place)

        assert done.returncode == 0, done.stdout + done.stderr
        assert cluster.pid is None

        demo = Demo(None, "--load=none", place)
        assert "500 flights of" in demo.said
        assert "loaded before" in demo.said
        demo.end(signal.SIGKILL)
        shutil.rmtree(demo.logs)

        assert demo.left() == []
        assert cluster.pid is None
    finally:
        cluster.destroy()
