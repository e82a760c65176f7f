"""The examples for KEDA and Kubernetes have the fields that these accept."""

from __future__ import annotations

from typing import Any

import pytest

from .test_pages import BLOCKS

yaml = pytest.importorskip("yaml")

TEXT, COUNT = (str, "a text"), (int, "a number")
Shape = dict[str, Any]
"""Field -> what it holds: a type, another shape, or a list of one. `!` marks what must be there."""

TRIGGERS: dict[str, Shape] = {
    "prometheus": {
        "serverAddress!": TEXT,
        "query!": TEXT,
        "threshold!": TEXT,
        "activationThreshold": TEXT,
        "namespace": TEXT,
        "customHeaders": TEXT,
        "ignoreNullValues": TEXT,
        "queryParameters": TEXT,
        "unsafeSsl": TEXT,
        "timeout": TEXT,
        "authModes": TEXT,
    },
    "metrics-api": {
        "url!": TEXT,
        "format": TEXT,
        "valueLocation!": TEXT,
        "targetValue!": TEXT,
        "activationTargetValue": TEXT,
        "authMode": TEXT,
        "method": TEXT,
        "keyParamName": TEXT,
        "unsafeSsl": TEXT,
    },
}
TRIGGER: Shape = {
    "type!": TEXT,
    "name": TEXT,
    "metadata!": (dict, "an object"),
    "authenticationRef": {"name!": TEXT, "kind": TEXT},
    "metricType": TEXT,
    "useCachedMetrics": (bool, "true or false"),
}
HEAD: Shape = {"apiVersion!": TEXT, "kind!": TEXT, "metadata!": {"name!": TEXT, "namespace": TEXT}}
TARGET: Shape = {"apiVersion": TEXT, "kind": TEXT, "name!": TEXT}
POLICIES: Shape = {
    "stabilizationWindowSeconds": COUNT,
    "selectPolicy": TEXT,
    "policies": [{"type!": TEXT, "value!": COUNT, "periodSeconds!": COUNT}],
}
SHAPES: dict[tuple[str, str], Shape] = {
    ("keda.sh/v1alpha1", "ScaledObject"): {
        **HEAD,
        "spec!": {
            "scaleTargetRef!": {**TARGET, "envSourceContainerName": TEXT},
            "pollingInterval": COUNT,
            "initialCooldownPeriod": COUNT,
            "cooldownPeriod": COUNT,
            "idleReplicaCount": COUNT,
            "minReplicaCount": COUNT,
            "maxReplicaCount": COUNT,
            "fallback": {"failureThreshold!": COUNT, "replicas!": COUNT, "behavior": TEXT},
            "triggers!": [TRIGGER],
        },
    },
    ("keda.sh/v1alpha1", "TriggerAuthentication"): {
        **HEAD,
        "spec!": {"secretTargetRef!": [{"parameter!": TEXT, "name!": TEXT, "key!": TEXT}]},
    },
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {
        **HEAD,
        "spec!": {
            "scaleTargetRef!": {**TARGET, "kind!": TEXT},
            "minReplicas": COUNT,
            "maxReplicas!": COUNT,
            "metrics": [
                {
                    "type!": TEXT,
                    "external!": {
                        "metric!": {"name!": TEXT, "selector": (dict, "an object")},
                        "target!": {"type!": TEXT, "value": TEXT, "averageValue": TEXT},
                    },
                }
            ],
            "behavior": {"scaleUp": POLICIES, "scaleDown": POLICIES},
        },
    },
}
DOCUMENTS = [yaml.safe_load(block.values[0]) for block in BLOCKS]
MANIFESTS = [
    pytest.param(document, id=document["kind"]) for document in DOCUMENTS if "kind" in document
]


def wrong(found: Any, shape: Any, path: str = "") -> list[str]:
    """Return what is wrong with a part of a manifest."""
    if isinstance(shape, tuple):
        kind, said = shape
        fits = isinstance(found, kind) and (kind is not int or not isinstance(found, bool))
        return [] if fits else [f"{path} must be {said}, it is {found!r}"]
    if isinstance(shape, list):
        if not isinstance(found, list) or not found:
            return [f"{path} must be a list"]
        return [
            e for nth, part in enumerate(found) for e in wrong(part, shape[0], f"{path}[{nth}]")
        ]
    if not isinstance(found, dict):
        return [f"{path} must be an object"]
    known = {name.rstrip("!"): inner for name, inner in shape.items()}
    needed = {name[:-1] for name in shape if name.endswith("!")}
    errors = [f"{path}.{name} is missing" for name in sorted(needed - found.keys())]
    for name, part in found.items():
        inner = f"{path}.{name}"
        errors += wrong(part, known[name], inner) if name in known else [f"{inner} is unknown"]
    return errors


def wrong_trigger(trigger: dict[str, Any]) -> list[str]:
    return [
        *wrong(trigger, TRIGGER, "trigger"),
        *wrong(trigger["metadata"], TRIGGERS[trigger["type"]], "metadata"),
    ]


def triggers() -> list[dict[str, Any]]:
    return [
        trigger
        for document in DOCUMENTS
        for trigger in [*document.get("triggers", ()), *_spec(document).get("triggers", ())]
    ]


def _spec(document: dict[str, Any]) -> dict[str, Any]:
    spec = document.get("spec", {})
    assert isinstance(spec, dict)
    return spec


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_manifest_has_the_fields_of_its_kind(manifest):
    assert wrong(manifest, SHAPES[manifest["apiVersion"], manifest["kind"]]) == []


def test_every_kind_has_an_example():
    assert {(d["apiVersion"], d["kind"]) for d in DOCUMENTS if "kind" in d} == SHAPES.keys()


@pytest.mark.parametrize("trigger", triggers(), ids=lambda trigger: trigger["type"])
def test_trigger_has_the_fields_of_its_type(trigger):
    assert wrong_trigger(trigger) == []


def test_token_of_a_trigger_is_that_of_an_example():
    wanted = {t["authenticationRef"]["name"] for t in triggers() if "authenticationRef" in t}
    kinds = {d["metadata"]["name"] for d in DOCUMENTS if d.get("kind") == "TriggerAuthentication"}

    assert wanted == kinds


@pytest.mark.parametrize(
    ("trigger", "error"),
    [
        ({"type": "prometheus", "metadata": {"url": "x"}}, "metadata.url is unknown"),
        ({"type": "prometheus", "metadata": {}}, "metadata.query is missing"),
        (
            {"type": "metrics-api", "metadata": {"targetValue": 1}},
            "metadata.targetValue must be a text, it is 1",
        ),
        (
            {"type": "prometheus", "metadata": {}, "authenticationRef": []},
            "trigger.authenticationRef must be an object",
        ),
    ],
)
def test_check_fails_when_a_trigger_is_wrong(trigger, error):
    assert error in wrong_trigger(trigger)
