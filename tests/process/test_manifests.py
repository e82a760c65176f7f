"""The manifests of the pages fit each other and the worker, which is run as they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class

from .test_health_port import ask, free_port
from .workers import Workers, wait_until

yaml = pytest.importorskip("yaml")
HOWTO = Path(__file__).parents[2] / "docs/howto"
EXTRA_SECONDS = 10
"""A worker may end this long after its shutdown timeout."""


def documents(page: str) -> list[dict[str, Any]]:
    text = (HOWTO / f"{page}.md").read_text()
    return [yaml.safe_load(b) for b in re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S)]


DEPLOYMENT_PAGE = documents("deployment")
BY_KIND = {d["kind"]: d for d in DEPLOYMENT_PAGE if "kind" in d}
(COMPOSE,) = (d for d in DEPLOYMENT_PAGE if "services" in d)
WORKER = BY_KIND["Deployment"]["spec"]["template"]["spec"]
(CONTAINER,) = WORKER["containers"]
ENVIRONMENT = {each["name"]: each["value"] for each in CONTAINER["env"]}


def options_of(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """Return the options of a command of ours, once the command line was understood."""
    python, manage, name, *arguments = command
    assert (python, manage) == ("python", "manage.py")
    assert name in get_commands()
    if name == "migrate":
        return {}
    command_class = load_command_class("django_tenantqueue", name)
    parser = command_class.create_parser("manage.py", name)
    assert environment.keys() <= getattr(command_class, "variables", set())
    return vars(parser.parse_args(arguments))


def commands() -> list[tuple[list[str], dict[str, str]]]:
    """Return (command, environment) of everything that the page starts."""
    dockerfile = (HOWTO / "deployment.md").read_text()
    (from_image,) = re.findall(r"^CMD (\[.*\])$", dockerfile, re.M)
    (job,) = BY_KIND["Job"]["spec"]["template"]["spec"]["containers"]
    partial = next(d for d in DEPLOYMENT_PAGE if "command" in d)
    return [
        (yaml.safe_load(from_image), {}),
        (CONTAINER["command"], ENVIRONMENT),
        (job["command"], {}),
        (partial["command"], {}),
        *((partial[probe]["exec"]["command"], {}) for probe in ("startupProbe", "livenessProbe")),
        *((s["command"], s.get("environment", {})) for s in COMPOSE["services"].values()),
    ]


@pytest.mark.parametrize(("command", "environment"), commands(), ids=lambda found: str(found)[:60])
def test_command_of_a_manifest_is_understood(command, environment) -> None:
    options_of(command, environment)


def test_heartbeat_file_is_the_one_that_the_probes_read() -> None:
    paths = {options_of(*each).get("heartbeat_file") for each in commands()[3:6]}

    assert paths == {"/tmp/worker.json"}


def test_worker_has_more_time_than_its_running_jobs() -> None:
    needed = int(ENVIRONMENT["TENANTQUEUE_SHUTDOWN_TIMEOUT"]) + EXTRA_SECONDS
    service = COMPOSE["services"]["worker"]
    in_compose = int(service["environment"]["TENANTQUEUE_SHUTDOWN_TIMEOUT"]) + EXTRA_SECONDS

    assert WORKER["terminationGracePeriodSeconds"] >= needed
    assert int(service["stop_grace_period"].rstrip("s")) >= in_compose


def test_selectors_and_targets_name_the_worker() -> None:
    deployment = BY_KIND["Deployment"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    name = deployment["metadata"]["name"]

    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert BY_KIND["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    targets = [
        d["spec"]["scaleTargetRef"]["name"]
        for d in documents("autoscaling")
        if "scaleTargetRef" in d.get("spec", {})
    ]
    assert targets == [name, name]  # KEDA, HorizontalPodAutoscaler


def test_container_may_write_only_to_its_volumes_and_is_not_root() -> None:
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"] is True
    assert WORKER["securityContext"]["runAsNonRoot"] is True
    assert WORKER["securityContext"]["runAsUser"] > 0
    assert {m["name"] for m in CONTAINER["volumeMounts"]} == {v["name"] for v in WORKER["volumes"]}
    assert (
        CONTAINER["resources"]["requests"]["memory"] == CONTAINER["resources"]["limits"]["memory"]
    )


def test_probes_are_answered_when_a_worker_runs_as_the_manifest_says(workers: Workers) -> None:
    port, (named,) = free_port(), CONTAINER["ports"]
    assert str(named["containerPort"]) == ENVIRONMENT["TENANTQUEUE_HEALTH_PORT"]
    assert CONTAINER["command"][2:] == ["runworker"]
    workers.launch(variables={**ENVIRONMENT, "TENANTQUEUE_HEALTH_PORT": str(port)})
    startup, liveness = (CONTAINER[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness"))
    assert {startup["port"], liveness["port"]} == {named["name"]}

    wait_until(lambda: answers(port, startup["path"]), what="the startup probe succeeds")

    assert answers(port, liveness["path"])


def answers(port: int, path: str) -> bool:
    try:
        return ask(port, path)[0] == 200
    except OSError:  # not listening yet
        return False
