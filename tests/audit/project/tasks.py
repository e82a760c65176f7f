"""The project's tasks, where workers look for them."""

from . import innocent, misbehaviours

__all__ = ["innocent", "misbehaviours"]
