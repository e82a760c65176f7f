"""Settings of features, the names of their queues, and what they do at the start."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, fields
from typing import ClassVar

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.test import override_settings

from django_tenantqueue import checks, conf, features
from django_tenantqueue.conf import get_settings, read_settings, settings_of
from django_tenantqueue.exceptions import InvalidOption, UnknownQueue
from django_tenantqueue.features import Feature
from django_tenantqueue.settings import Settings, setting
from tests.suites import app_path
from tests.testapp.tasks import add


@dataclass(frozen=True, slots=True)
class ParcelSettings:
    group: ClassVar[str] = "PARCELS"

    queue: str = setting("parcels", is_queue=True)
    patience: float = setting(2.0, above=0, most=30)
    prices: str | None = setting(None, takes=1)
    carriers: tuple[str, ...] = ("van",)

    def check(self) -> None:
        if self.carriers == ():
            raise InvalidOption("TENANTQUEUE['PARCELS']['CARRIERS'] names no carrier")


class Parcels(Feature):
    settings = ParcelSettings

    def queue_names(self):
        return [settings_of(ParcelSettings).queue]


@pytest.fixture
def install(monkeypatch):
    """Install only these features."""

    def only(*chosen: Feature) -> None:
        monkeypatch.setattr(features, "installed", lambda: chosen)
        monkeypatch.setattr(conf, "installed", lambda: chosen)
        features._bound.cache_clear()
        conf._cache.clear()

    yield only
    features._bound.cache_clear()
    conf._cache.clear()


def test_values_of_a_feature_are_read_when_it_is_installed(install):
    install(Parcels())

    assert settings_of(ParcelSettings) == ParcelSettings()
    raw = {"PARCELS": {"PATIENCE": 5, "CARRIERS": ["bike"]}, "DEFAULT_QUEUE": "mail"}
    with override_settings(TENANTQUEUE=raw):
        made = settings_of(ParcelSettings)
        assert (made.patience, made.carriers) == (5.0, ("van", "bike"))
        assert settings_of(ParcelSettings) is made
        assert settings_of(Settings) is get_settings()
        assert get_settings().default_queue == "mail"
    assert settings_of(ParcelSettings) == ParcelSettings()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"PARCELS": {"PATIENCE": 0}}, "TENANTQUEUE['PARCELS']['PATIENCE'] is 0.0: it must be a"),
        ({"PARCELS": {"PATIENCE": 31}}, "['PATIENCE'] is 31.0: it must be at most 30"),
        ({"PARCELS": {"PATIENCE": "2"}}, "['PATIENCE'] is '2': it must be a duration"),
        ({"PARCELS": {"QUEUE": ""}}, "it must be from 1 to 100 characters long"),
        ({"PARCELS": {"CARRIERS": ["!*"]}}, "TENANTQUEUE['PARCELS']['CARRIERS'] names no carrier"),
        (
            {"PARCELS": {"PATIENSE": 1}},
            (
                "TENANTQUEUE['PARCELS']['PATIENSE'] is not a setting; did you mean "
                "TENANTQUEUE['PARCELS']['PATIENCE']?"
            ),
        ),
        ({"PARCELS": {"COLOUR": 1}}, "known are QUEUE, PATIENCE, PRICES, CARRIERS"),
        ({"PARCELS": 3}, "TENANTQUEUE['PARCELS'] is 3: it must be a dict"),
        ({"PARCELS_PATIENCE": 1}, "did you mean TENANTQUEUE['PARCELS']['PATIENCE']"),
        ({"PARCEL": {}}, "did you mean TENANTQUEUE['PARCELS']"),
        (
            {"PATIENCE": 1},
            (
                "TENANTQUEUE['PATIENCE'] is not a setting: its place is "
                "TENANTQUEUE['PARCELS']['PATIENCE']"
            ),
        ),
        (
            {"PARCELS": {"DATABASE": "x"}},
            (
                "TENANTQUEUE['PARCELS']['DATABASE'] is not a setting: its place is "
                "TENANTQUEUE['DATABASE']"
            ),
        ),
        ({"COLOUR": 3}, "known are DATABASE,"),
        ({"HTTP": {"TIMEOUT": 3}}, "needs django_tenantqueue.contrib.http in INSTALLED_APPS"),
        ({"HTTP_TIMEOUT": 3}, "needs django_tenantqueue.contrib.http in INSTALLED_APPS"),
        ({"METRICS": {}}, "needs django_tenantqueue.contrib.prometheus in INSTALLED_APPS"),
    ],
    ids=str,
)
def test_any_wrong_key_is_named_when_the_core_reads_its_own(install, raw, message):
    install(Parcels())

    with override_settings(TENANTQUEUE=raw), pytest.raises(InvalidOption) as caught:
        get_settings()

    assert message in str(caught.value)


def test_known_keys_are_all_of_them_when_one_is_unknown(install):
    install(Parcels())

    with pytest.raises(InvalidOption, match=r"known are DATABASE,.*, PARCELS$"):
        read_settings({"COLOUR": 3})


def test_values_are_none_when_the_feature_is_not_installed(install):
    install()

    with pytest.raises(LookupError, match=r"features\.test_settings belongs to no app in INSTALL"):
        settings_of(ParcelSettings)


@override_settings(TENANTQUEUE={"COLOUR": 3, "DEFAULT_QUEUE": "mail", "PARCELS": {"PATIENCE": 7}})
def test_own_keys_alone_are_read_while_django_starts(install, monkeypatch):
    install(Parcels())
    monkeypatch.setattr(apps, "ready", False)

    assert get_settings().default_queue == "mail"
    assert settings_of(ParcelSettings).patience == 7.0
    monkeypatch.setattr(apps, "ready", True)
    with pytest.raises(InvalidOption, match="COLOUR"):
        get_settings()


@pytest.mark.parametrize("path", ["tests.nowhere.prices", "os.getcwd"])
def test_path_of_a_feature_is_found_when_it_cannot_be_used(install, path):
    install(Parcels())

    with override_settings(TENANTQUEUE={"PARCELS": {"PRICES": path}}):
        (message,) = checks.check_settings()

    assert message.id == "tenantqueue.E004"
    assert f"TENANTQUEUE['PARCELS']['PRICES'] names {path!r}, which cannot be used" in message.msg


@pytest.mark.django_db(transaction=True)
@override_settings(TENANTQUEUE={"STRICT_QUEUES": True, "PARCELS": {"QUEUE": "heavy"}})
def test_queue_of_a_feature_is_made_when_queues_are_strict(install):
    with pytest.raises(InvalidOption, match="PARCELS"):
        get_settings()
    install(Parcels())

    add.using(tenant="acme", queue="heavy").delay(1, 2)
    with pytest.raises(UnknownQueue):
        add.using(tenant="acme", queue="alerts").delay(1, 2)


def test_settings_are_read_again_when_other_apps_are_installed():
    before = get_settings()

    setting_changed.send(sender=None, setting="INSTALLED_APPS", value=[], enter=True)

    assert get_settings() is not before


def test_no_group_belongs_to_two_features():
    groups = [kind.group for kind in conf.settings_kinds()]

    assert len(groups) == len(set(groups))
    assert not {*groups} & {each.name.upper() for each in fields(Settings)}
    installed = [group for group, app in conf._APPS.items() if apps.is_installed(app_path(app))]
    assert set(installed) <= set(groups)


def test_feature_is_refused_when_its_settings_have_no_group(monkeypatch):
    @dataclass(frozen=True)
    class Homeless:
        colour: str = ""

    class Wrong(Feature):
        settings = Homeless

    config = apps.get_app_config("testapp")
    monkeypatch.setattr(config, "tenantqueue_features", ("wrong",), raising=False)
    monkeypatch.setattr(features, "import_string", lambda path: Wrong)

    with pytest.raises(ImproperlyConfigured, match=r"Homeless needs a class variable `group`"):
        features._features_of(config)


START = """
import sys
import django
from django.conf import settings
from django.core.checks import registry

class NoCelery:
    def find_spec(self, name, path=None, target=None):
        if name == "celery":
            raise ImportError(name)

sys.meta_path.insert(0, NoCelery())
settings.configure(
    INSTALLED_APPS=[
        "django_tenantqueue",
        "django_tenantqueue.contrib.alerts",
        "django_tenantqueue.contrib.celery",
        "django_tenantqueue.contrib.http",
        "django_tenantqueue.contrib.schedules",
    ],
    USE_TZ=True,
)
django.setup()
from django_tenantqueue.calls.sources import known_names
from django_tenantqueue.contrib.celery.feature import Celery
from django_tenantqueue.features import installed
assert any(isinstance(one, Celery) for one in installed())
print(*sorted(known_names()))
print(*sorted(check.__name__ for check in registry.registry.get_checks()))
"""


def test_features_are_ready_when_django_has_started_without_celery():
    run = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    tasks, registered = run.stdout.splitlines()
    assert {"django_tenantqueue.http.http_job", "django_tenantqueue.alerts.deliver"} <= {
        *tasks.split()
    }
    assert "check_schedules" in registered.split()


WITH_CELERY = """
import celery
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django_tenantqueue", "django_tenantqueue.contrib.celery"], USE_TZ=True
)
django.setup()
from django_tenantqueue.calls import sources
print("django_tenantqueue.run" in celery.current_app.tasks, len(sources._finders))
"""


def test_tasks_of_celery_are_found_when_the_project_uses_it():
    pytest.importorskip("celery")
    run = subprocess.run(
        [sys.executable, "-c", WITH_CELERY], capture_output=True, text=True, check=False
    )

    assert run.stdout.split() == ["True", "1"], run.stderr
