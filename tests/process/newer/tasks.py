"""Tasks after a deployment: one has another signature, one is new, one is gone."""

from django_tenantqueue import task


@task(name="rolled.changed")
def changed(number: int, unit: str) -> str:
    """Return which code has run."""
    return f"newer {number} {unit}"


@task(name="rolled.added")
def added() -> str:
    """Return which code has run."""
    return "newer"
