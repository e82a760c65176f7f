"""Tasks before a deployment."""

from django_tenantqueue import task


@task(name="rolled.changed")
def changed(number: int) -> str:
    """Return which code has run."""
    return f"older {number}"


@task(name="rolled.removed")
def removed() -> str:
    """Return which code has run."""
    return "older"
