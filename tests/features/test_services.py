"""What features add to the start: of a worker, of its supervisor, of the app, of the URLs."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec, module_from_spec
from io import StringIO
from types import ModuleType
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from django_tenantqueue import features
from django_tenantqueue.features import Feature, Service
from django_tenantqueue.management.commands import runworker
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.supervisor import supervisor

Install = Callable[[Feature], None]


class Recorder:
    """A service that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def start(self) -> None:
        self.told.append("start")

    def close_in_child(self) -> None:
        self.told.append("close_in_child")

    def close(self) -> None:
        self.told.append("close")


class Serving(Feature):
    """Adds an option, and a service for each of its values."""

    def __init__(self) -> None:
        self.made: list[Recorder] = []

    def worker_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--recorders", type=int, default=0)

    def services(self, using: str, options: Mapping[str, Any]) -> Iterable[Service]:
        assert using == "default"
        self.made = [Recorder() for _ in range(options["recorders"])]
        return self.made


@pytest.mark.django_db(transaction=True)
def test_supervisor_gets_the_services_of_features(install: Install, monkeypatch) -> None:
    serving = Serving()
    install(serving)
    given: list[Service] = []

    class NotRunning:
        def __init__(
            self, config: WorkerConfig, *, services: Sequence[Service], say: Any, health_port: Any
        ) -> None:
            given.extend(services)

        def run(self) -> int:
            return 0

    monkeypatch.setattr(runworker, "Supervisor", NotRunning)

    call_command("runworker", "--recorders=2", "--verbosity=0")

    assert given == serving.made
    assert len(given) == 2


@pytest.mark.django_db
def test_connections_of_services_are_counted_at_the_start(monkeypatch) -> None:
    monkeypatch.setattr(runworker, "connection_budget", lambda _using: (5, 0))
    command = runworker.Command(stderr=StringIO())
    config = WorkerConfig("default", "web", threads=2)

    command._warn_of_connections(config)
    assert not command.stderr._out.getvalue()
    command._warn_of_connections(config, [Recorder()])

    assert "may open 6 database connections" in command.stderr._out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_services_begin_and_end_with_the_supervisor(monkeypatch) -> None:
    in_child: list[Callable[[], None]] = []

    class Gone:
        """Children that have ended."""

        are_gone = True
        refused = None

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            in_child.append(kwargs["in_child"])

        def start_due(self) -> None:
            pass

    monkeypatch.setattr(supervisor, "Children", Gone)
    monkeypatch.setattr(supervisor.signal, "signal", lambda *_: None)
    monkeypatch.setattr(supervisor.signal, "set_wakeup_fd", lambda *_, **__: -1)
    services = [Recorder(), Recorder()]
    config = WorkerConfig("default", "web", maintenance=False)

    assert supervisor.Supervisor(config, say=print, services=services).run() == 0
    in_child[0]()

    assert [one.told for one in services] == [["start", "close", "close_in_child"]] * 2


class Starting(Feature):
    def __init__(self, error: str = "") -> None:
        self.error = error
        self.started: list[str] = []

    def ready(self) -> None:
        self.started.append("ready")

    def worker_started(self, using: str) -> None:
        self.started.append(using)
        if self.error:
            raise DatabaseError(self.error)


@pytest.mark.django_db
@pytest.mark.parametrize("error", ["", "no such table"])
def test_features_bring_rows_in_line_when_a_worker_starts(install: Install, error: str) -> None:
    starting = Starting(error)
    install(starting)
    command = runworker.Command(stderr=StringIO())

    command._sync_declared(WorkerConfig("default", "web"))

    assert starting.started == ["default"]
    told = command.stderr._out.getvalue()
    assert ("writing what the code declares failed: no such table" in told) is bool(error)


def test_features_are_told_when_all_models_are_loaded(install: Install) -> None:
    starting = Starting()
    install(starting)

    apps.get_app_config("tenantqueue").ready()

    assert starting.started == ["ready"]


class Paging(Feature):
    def urls(self) -> Sequence[URLPattern]:
        return [path("own", page, name="own")]


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def made_anew(name: str) -> ModuleType:
    """Return a module as it is when it is imported now, and leave the one that is known."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_pages_of_features_stand_beside_those_of_the_core(install: Install) -> None:
    install(Paging())

    names = [pattern.name for pattern in made_anew("django_tenantqueue.web.urls").urlpatterns]

    assert names[-3:] == ["own", "statuses", "status"]


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (f"{__name__}.Recorder", "must be a tuple of dotted paths"),
        ((f"{__name__}.Recorder",), "must name classes that inherit from Feature"),
    ],
)
def test_error_names_the_app_whose_features_are_declared_wrongly(
    paths: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = apps.get_app_config("testapp")
    monkeypatch.setattr(config, "tenantqueue_features", paths, raising=False)
    features.installed.cache_clear()

    with pytest.raises(ImproperlyConfigured, match=rf"^tests\.testapp: .*Recorder.* {said}$"):
        features.installed()

    features.installed.cache_clear()
