"""What a newcomer guesses: the error names what is meant, and nothing is wrong in silence."""

from __future__ import annotations

import pytest
from django.core.exceptions import FieldError
from django.core.management import CommandError, call_command

from django_tenantqueue import Job, State
from django_tenantqueue.exceptions import InvalidOption
from tests.testapp.tasks import add

NEEDS = "schedules"


@pytest.mark.parametrize(
    ("guess", "meant"),
    [("failed", "error"), ("SUCCEEDED", "success"), ("pending", "ready"), ("created", "ready")],
)
def test_state_that_does_not_exist_is_not_looked_for(guess: str, meant: str) -> None:
    with pytest.raises(InvalidOption, match=f"no such state, use '{meant}': the states are sch"):
        Job.objects.filter(state=guess).exists()
    with pytest.raises(InvalidOption, match=f"use '{meant}'"):
        Job.objects.exclude(state__in=["running", guess]).count()


def test_state_without_a_meaning_gets_the_list() -> None:
    with pytest.raises(
        InvalidOption, match="'blue': there is no such state: the states are"
    ) as got:
        Job.objects.filter(state="blue").exists()
    assert (got.value.option, got.value.value) == ("state", "blue")


@pytest.mark.django_db
def test_states_are_found_as_members_texts_and_attributes_of_the_model() -> None:
    job = add.using(tenant="acme").delay(1, 2)

    assert Job.State is State
    assert Job.objects.filter(state=Job.State.READY).get().pk == job.pk
    assert Job.objects.filter(state="ready", state__in=["ready", "error"]).count() == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from django_tenantqueue.testing import drain_queue", r"use run_pending\(\)"),
        ("from django_tenantqueue.signals import job_failed", "with state 'error'"),
        ("from django_tenantqueue.contrib.schedules import periodic", "the option schedule="),
        ("from django_tenantqueue import periodic", "as in @task"),
    ],
)
def test_import_of_a_guessed_name_names_ours(line: str, said: str) -> None:
    with pytest.raises(ImportError, match=said):
        exec(line)


@pytest.mark.parametrize(
    ("column", "meant"),
    [("status", "use state"), ("tenant", "use queue__tenant"), ("task_name__in", "use task")],
)
def test_column_of_another_system_names_ours(column: str, meant: str) -> None:
    with pytest.raises(FieldError, match=rf"Instead of '{column}' {meant}"):
        Job.objects.filter(**{column: ["x"]})
    with pytest.raises(FieldError, match=meant):
        Job.objects.unfinished().exclude(**{column: ["x"]})
    with pytest.raises(FieldError, match="Choices are"):
        Job.objects.get(colour="red")


def test_hint_is_the_only_one() -> None:
    with pytest.raises(AttributeError, match=r"use Job\.objects\.get") as caught:
        _ = add.get_result
    assert (caught.value.name, caught.value.obj) == ("get_result", None)


def test_verb_for_numbers_names_the_command_for_many() -> None:
    with pytest.raises(CommandError, match=r"not the number of .* use tenantqueue bulk"):
        call_command("tenantqueue", "retry", "--tenant", "acme")
