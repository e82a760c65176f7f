"""Tests here fill and empty the tables themselves."""

import pytest


@pytest.fixture
def transactional_db(planner):
    """Replace the fixture of pytest-django, which would empty the tables after each test."""
