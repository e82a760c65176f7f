"""What the tests with real workers share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .workers import Gate, Workers


@pytest.fixture
def workers(transactional_db: None, database_url: str, tmp_path: Path) -> Iterator[Workers]:
    """Yield a maker of workers on the test database; all are killed at the end."""
    made = Workers(database_url, tmp_path)
    yield made
    made.destroy()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Return a gate that is shut."""
    return Gate(tmp_path / "gate")
