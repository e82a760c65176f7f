"""A module of a project whose functions CALLABLES lists with a pattern."""

from __future__ import annotations

import os
import subprocess
from functools import partial, wraps
from typing import Any

from django_tenantqueue import bulk
from django_tenantqueue.management.subcommands import bulk as command
from django_tenantqueue.operations import control
from tests.testapp.models import Plain

run = subprocess.run
imported = (os, control, Plain)


def double(value: int) -> int:
    """Return twice the value."""
    return 2 * value


doubled = double
of_three = partial(double, 3)
text_of = str


def logged(function: Any) -> Any:
    """Do nothing more than the function."""

    @wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


@logged
def triple(value: int) -> int:
    """Return three times the value."""
    return 3 * value


class Base:
    """A class whose methods others inherit."""

    @classmethod
    def named(cls) -> str:
        """Return the name of the class."""
        return cls.__name__

    @staticmethod
    def fixed() -> str:
        """Return a text."""
        return "fixed"


class Machine(Base):
    """A class with methods, and with what is none of its own."""

    shell = staticmethod(os.system)
    run = subprocess.run
    system = os.system
    inner = Plain

    def start(self) -> str:
        """Return a text."""
        return "started"

    @property
    def starter(self) -> Any:
        """Return a function of another module."""
        return os.system

    def __call__(self) -> str:
        return "called"


machine = Machine()
start = machine.start


class Purge(command.Bulk):
    """A command of a project that inherits one of the package."""


start_bulk = bulk.start
start_cancel = partial(bulk.start, "cancel")
start_logged = logged(bulk.start)
purge = Purge()
