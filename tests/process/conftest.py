"""What the tests with real workers share."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from example_project.postgres import Cluster
from tests.zygote import Zygote

from .proxy import Proxy
from .workers import Gate, Workers


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote(flags=["-W", "error"])
    yield made
    made.close()


@pytest.fixture
def workers(
    transactional_db: None, database_url: str, tmp_path: Path, zygote: Zygote
) -> Iterator[Workers]:
    """Yield a maker of workers on the test database; all are killed at the end."""
    made = Workers(database_url, tmp_path, zygote)
    yield made
    made.destroy()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    directory = Path(tempfile.mkdtemp(prefix="tenantqueue-"))
    directory.chmod(0o755)
    cluster = Cluster(directory)
    yield cluster
    cluster.destroy()


@pytest.fixture
def proxies(database_url: str) -> Iterator[Callable[[], Proxy]]:
    made: list[Proxy] = []

    def make() -> Proxy:
        made.append(Proxy(database_url))
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()
