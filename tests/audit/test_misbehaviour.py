"""The black hole: whatever one tenant's tasks do to a worker, those of another run as if alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from .conftest import Project
from .project.misbehaviours import TABLE

INNOCENT = 200
CONN_MAX_AGES = (0, 60)
"""Connections that last for one job, or for a minute."""
PLAYED = [
    (age, name) for age in CONN_MAX_AGES for name, way in TABLE.items() if age or way.connection
]
Projects = Callable[[int], Project]
pytestmark = pytest.mark.heavy


def test_there_are_forty_ways():
    assert len(TABLE) >= 40


@pytest.mark.parametrize(("age", "name"), PLAYED)
def test_200_innocent_jobs_succeed_once_each_beside(projects: Projects, age: int, name: str):
    project = projects(age)
    way = TABLE[name]
    if way.replaced:
        project.begin_anew()  # else it is replaced later and later
    before = project.child()

    played = project.play(name)

    try:
        assert played["innocent"] == {"success": INNOCENT}
        assert played["effects"] == {"1": INNOCENT}
        assert played["found"] == {}
        assert sum(played["bad"].values()) == way.jobs
        assert all(re.match(way.ends, end, re.DOTALL) for end in played["bad"]), played["bad"]
        assert way.replaced or project.child() == before
    except AssertionError as error:
        error.add_note(f"{played}\n{project.log.read_text()[-4000:]}")
        project.begin_anew()
        raise
    if way.replaced:
        project.begin_anew()


@pytest.mark.parametrize("age", CONN_MAX_AGES)
def test_worker_stops_in_order_after_all_of_them(projects: Projects, age: int):
    project = projects(age)
    project.play("closes_the_connection")

    assert project.stop() == 0
