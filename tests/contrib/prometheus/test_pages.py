"""Examples, alerts and the dashboard name metrics and labels that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from django_tenantqueue.contrib.prometheus.families import FAMILIES

yaml = pytest.importorskip("yaml")
DOCS = Path(__file__).parents[3] / "docs"
DASHBOARD = json.loads((DOCS / "metrics" / "grafana.json").read_text())
LABELS = {sample: {*family.labels} for family in FAMILIES for sample in family.samples}
SCRAPED = {"instance", "job", "le"}
"""Labels that Prometheus adds, and that of the buckets."""
BLOCKS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in ("metrics", "autoscaling")
    for number, block in enumerate(
        re.findall(r"^```yaml\n(.*?)^```$", (DOCS / f"howto/{page}.md").read_text(), re.M | re.S)
    )
]


def check(expression: str) -> None:
    """Fail when an expression names a metric or a label of it that does not exist."""
    names = re.findall(r"\btenantqueue_\w+", expression)
    assert names, expression
    for name in names:
        assert name in LABELS, f"{name} in {expression}"
    for name, matchers in re.findall(r"(tenantqueue_\w+)\{(.*?)\}", expression):
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers):
            assert label in LABELS[name] | SCRAPED, f"{label} in {expression}"
    known = set.intersection(*(LABELS[name] for name in names)) | SCRAPED
    for labels in re.findall(r"\bby \((.*?)\)", expression):
        assert {label.strip() for label in labels.split(",")} <= known, expression
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")


def expressions(found: Any) -> list[str]:
    """Return the values of the keys that hold expressions or names of metrics."""
    if isinstance(found, list):
        return [text for value in found for text in expressions(value)]
    if not isinstance(found, dict):
        return []
    own = [
        value
        for key, value in found.items()
        if key in ("expr", "query", "seriesQuery", "metricsQuery", "valueLocation")
        or (key == "name" and str(value).startswith("tenantqueue_"))
    ]
    return own + [text for value in found.values() for text in expressions(value)]


def targets() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("block", BLOCKS)
def test_example_names_metrics_that_exist(block):
    parsed = yaml.safe_load(block)

    assert isinstance(parsed, dict)
    found = expressions(parsed)
    for expression in found:
        check(expression)
    assert found or "scrape_configs" in parsed or parsed.get("kind") == "TriggerAuthentication"


def test_alerts_use_labels_that_exist_in_their_texts():
    text = (DOCS / "howto/metrics.md").read_text()

    used = set(re.findall(r"\$labels\.(\w+)", text))
    assert used <= set().union(*LABELS.values())


def test_keda_and_hpa_read_the_wanted_workers():
    found = [e for block in BLOCKS for e in expressions(yaml.safe_load(block.values[0]))]

    assert sum("tenantqueue_wanted_workers" in expression for expression in found) >= 4


@pytest.mark.parametrize("expression", targets())
def test_dashboard_names_metrics_and_labels_that_exist(expression):
    check(expression.replace("$__rate_interval", "5m"))


def test_legends_use_labels_of_their_expressions():
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert re.search(rf"by \([^)]*\b{label}\b", target["expr"]), target


def test_dashboard_has_what_grafana_needs():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    places = {(p["gridPos"]["x"], p["gridPos"]["y"]) for p in DASHBOARD["panels"]}
    assert len(places) == len(ids)
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    text = json.dumps(DASHBOARD["panels"]).replace("$__rate_interval", "")
    assert set(re.findall(r"\$\{?(\w+)\}?", text)) <= variables
    assert DASHBOARD["title"]
    assert DASHBOARD["schemaVersion"]


def test_dashboard_shows_every_kind_of_metric():
    shown = {name for text in targets() for name in re.findall(r"tenantqueue_\w+", text)}
    left = {family.name for family in FAMILIES if not shown.intersection(family.samples)}

    assert left <= {
        "tenantqueue_blocked_queues",
        "tenantqueue_condition",
        "tenantqueue_queue_slots",
        "tenantqueue_worker_async_slots",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        "tenantqueue_nothing",
        'tenantqueue_jobs{tenant="a"}',
        "sum by (tenant) (tenantqueue_jobs)",
        "max(tenantqueue_slots",
        "up",
    ],
)
def test_check_fails_when_an_expression_is_wrong(wrong):
    with pytest.raises(AssertionError):
        check(wrong)


def test_reference_lists_every_metric_and_label():
    text = (DOCS / "reference" / "metrics.md").read_text()

    assert "<!-- from the code: metrics -->" in text
    for family in FAMILIES:
        for label in family.labels:
            assert f"`{label}`" in text
