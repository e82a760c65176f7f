"""A feature beside those of the installed apps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from django_tenantqueue import features
from django_tenantqueue.features import Feature


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Feature], None]]:
    """Return a function that installs a feature, after the others, until the test ends."""

    def install(feature: Feature) -> None:
        everything = (*features.installed(), feature)
        monkeypatch.setattr(features, "installed", lambda: everything)
        features._bound.cache_clear()

    yield install
    features._bound.cache_clear()
