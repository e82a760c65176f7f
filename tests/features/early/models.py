"""An app that declares a task in its models, before the models of other apps are loaded."""

from django_tenantqueue import Cron, task


@task(schedule=Cron("30 3 * * *", args=(1,)))
def nightly(number: int) -> None:
    """Do nothing."""
