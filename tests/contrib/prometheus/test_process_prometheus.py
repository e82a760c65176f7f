"""What the docs give to Prometheus and Grafana, tried with a real Prometheus."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from django_tenantqueue.operations import maintain
from tests.process.workers import Workers, make_queue, wait_until
from tests.testapp.tasks import add, fail, noop

from .test_pages import BLOCKS, DASHBOARD, expressions
from .test_process import free_port

yaml = pytest.importorskip("yaml")
pytest.importorskip("prometheus_client")

PROGRAMS = ("prometheus", "promtool")
EXAMPLES = [yaml.safe_load(block.values[0]) for block in BLOCKS]
ALERTS = next(block for block in EXAMPLES if "groups" in block)
TOKEN = "for-tests-alone-0123"
ACCESS = {"METRICS": {"ACCESS": TOKEN}}
MINUTES = 30
FIRE_AFTER = {
    "JobsWait": 10,
    "NoWorker": 5,
    "WorkersAreSilent": 5,
    "SomethingIsWrong": 15,
    "TaskFails": 25,
}
"""Minutes after which each alert fires on the series of its test."""

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        None in map(shutil.which, PROGRAMS),
        reason="no prometheus and promtool: apt-get install prometheus",
    ),
]


def promtool(*arguments: str) -> None:
    """Run a check of promtool, which prints what is wrong."""
    done = subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Prometheus:
    """A Prometheus that scrapes what a test serves."""

    def __init__(self, directory: Path, config: dict[str, Any]) -> None:
        path = directory / "prometheus.yml"
        path.write_text(yaml.safe_dump(config))
        promtool("check", "config", str(path))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = directory / "prometheus.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={path}",
                    f"--storage.tsdb.path={directory / 'data'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer; the error's text fails the test."""
        url = f"{self.url}/api/v1/{path}?{urlencode(parameters)}"
        with urlopen(url, timeout=10) as response:
            return json.load(response)["data"]

    def query(self, expression: str) -> list[float]:
        found = self.get("query", query=expression)["result"]
        return [float(series["value"][1]) for series in found]

    def has_scraped(self, targets: int, times: int) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.query(f"count(sum_over_time(up[10m]) >= {times})") == [targets]
        except URLError:
            return False


def is_answering() -> bool:
    """Whether a thread of the live server answers a request, and may use the database."""
    return any("process_request" in thread.name for thread in threading.enumerate())


@pytest.fixture
def prometheus(
    workers: Workers, live_server: Any, tmp_path: Path, settings: Any
) -> Iterator[Prometheus]:
    """Yield a Prometheus that has scraped a page and a worker's port, with jobs of every kind."""
    settings.ROOT_URLCONF = "tests.web.urls"
    settings.TENANTQUEUE = ACCESS
    maintain.thin_figures("default")
    make_queue("acme", "paused", paused=True)
    add.using(tenant="acme").enqueue_many(range(20))
    fail.using(max_attempts=1).enqueue_many(["no such file"] * 5)
    fail.using(max_attempts=2).delay()
    workers.run("--until-empty", "--processes=1")
    noop.using(tenant="acme", queue="paused").delay()
    noop.using(session="one").delay()
    noop.using(session="one").delay()
    port = free_port()
    workers.start("--tenants=none", f"--metrics-port={port}", settings=ACCESS)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump(ALERTS))
    scrapes = [entry for block in EXAMPLES for entry in block.get("scrape_configs", ())]
    targets = [live_server.url.removeprefix("http://"), f"127.0.0.1:{port}"]
    for entry, target in zip(scrapes, targets, strict=True):
        entry |= {"job_name": target, "scrape_interval": "1s", "scrape_timeout": "1s"}
        entry["static_configs"] = [{"targets": [target]}]
        entry["authorization"] = {"type": "Bearer", "credentials_file": str(tmp_path / "token")}
    made = Prometheus(
        tmp_path,
        {
            "global": {"evaluation_interval": "1s"},
            "rule_files": [str(tmp_path / "alerts.yml")],
            "scrape_configs": scrapes,
        },
    )
    try:
        wait_until(lambda: made.has_scraped(2, 2), what="both targets are scraped")
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        wait_until(lambda: not is_answering(), what="the page has answered")
        sys.stdout.write(made.log.read_text())


def test_every_query_of_the_docs_has_data(prometheus: Prometheus):
    instance = prometheus.get("label/instance/values", **{"match[]": "tenantqueue_wanted_workers"})
    assert len(instance) == 2
    queries = [t["expr"] for panel in DASHBOARD["panels"] for t in panel["targets"]]
    queries += [found for block in EXAMPLES if block is not ALERTS for found in expressions(block)]

    for text in queries:
        expression = text.replace("$__rate_interval", "1m").replace("$instance", instance[0])
        assert prometheus.query(expression), f"no data: {text}"

    assert any(not math.isnan(value) for value in prometheus.query(quantile()))
    groups = prometheus.get("rules")["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert rules.keys() == FIRE_AFTER.keys()
    assert {rule["health"] for rule in rules.values()} == {"ok"}, rules


def quantile() -> str:
    """Return a query of a histogram that has counted runs before its first scrape."""
    return "histogram_quantile(0.5, sum by (le) (tenantqueue_run_seconds_bucket))"


def test_alerts_fire_when_their_series_say_so(tmp_path: Path):
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump(ALERTS))
    at = 'instance="worker:9100", job="tenantqueue"'
    failing = f'{{{at}, task="shop.tasks.pay"}}'
    series = {
        f"tenantqueue_startable_wait_seconds{{{at}}}": f"301x{MINUTES}",
        f"tenantqueue_worker_threads{{{at}}}": f"0x{MINUTES}",
        f'tenantqueue_jobs{{{at}, state="ready"}}': f"7x{MINUTES}",
        f'tenantqueue_workers{{{at}, state="silent"}}': f"1x{MINUTES}",
        f'tenantqueue_condition{{{at}, condition="task_paused"}}': f"1x{MINUTES}",
        f"tenantqueue_jobs_started_total{failing}": f"0+100x{MINUTES}",
        f"tenantqueue_jobs_failed_total{failing}": f"0+11x{MINUTES}",
    }
    quiet = {
        f"tenantqueue_startable_wait_seconds{{{at}}}": f"299x{MINUTES}",
        f"tenantqueue_worker_threads{{{at}}}": f"8x{MINUTES}",
        f'tenantqueue_jobs{{{at}, state="ready"}}': f"7x{MINUTES}",
        f'tenantqueue_workers{{{at}, state="silent"}}': f"0x{MINUTES}",
        f'tenantqueue_condition{{{at}, condition="task_paused"}}': f"0x{MINUTES}",
        f"tenantqueue_jobs_started_total{failing}": f"0+100x{MINUTES}",
        f"tenantqueue_jobs_failed_total{failing}": f"0+9x{MINUTES}",
    }
    rules = {rule["alert"]: rule for group in ALERTS["groups"] for rule in group["rules"]}
    assert rules.keys() == FIRE_AFTER.keys()
    labels = {"instance": "worker:9100", "job": "tenantqueue"}
    own = {
        "JobsWait": ({}, "Jobs that could start have waited for 5m 1s."),
        "NoWorker": ({}, rules["NoWorker"]["annotations"]["summary"]),
        "WorkersAreSilent": (
            {"state": "silent"},
            rules["WorkersAreSilent"]["annotations"]["summary"],
        ),
        "SomethingIsWrong": ({"condition": "task_paused"}, "The condition task_paused holds."),
        "TaskFails": (
            {"task": "shop.tasks.pay"},
            "More than 10 % of the runs of shop.tasks.pay end in error.",
        ),
    }

    def fires(name: str) -> dict[str, Any]:
        more, summary = own[name]
        of_one = {} if name == "SomethingIsWrong" else labels  # the others are not grouped
        return {"exp_labels": {**of_one, **more}, "exp_annotations": {"summary": summary}}

    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": k, "values": v} for k, v in found.items()],
            "alert_rule_test": [
                {
                    "eval_time": f"{minutes}m",
                    "alertname": name,
                    "exp_alerts": [fires(name)] if found is series else [],
                }
                for name, minutes in FIRE_AFTER.items()
            ],
        }
        for found in (series, quiet)
    ]
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": ["alerts.yml"], "tests": tests}))

    promtool("test", "rules", str(path))
