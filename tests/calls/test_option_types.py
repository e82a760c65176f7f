"""The types of options name what the code accepts."""

from __future__ import annotations

from typing import get_args

import pytest

from django_tenantqueue.calls import option_types
from django_tenantqueue.calls.options import NAMES, OF_TASKS
from django_tenantqueue.calls.serial import OnFailure, OnWait, Serial
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.groups import DEFAULTS


def test_types_name_the_options_that_are_accepted() -> None:
    of_jobs = {*NAMES}
    assert option_types.JobOptions.__optional_keys__ == of_jobs
    assert option_types.TaskOptions.__optional_keys__ == {*of_jobs, *OF_TASKS}
    assert option_types.GroupOptions.__optional_keys__ == set(DEFAULTS)


@pytest.mark.parametrize(("name", "texts"), [("on_wait", OnWait), ("on_failure", OnFailure)])
def test_types_name_the_texts_that_are_accepted(name: str, texts: object) -> None:
    for text in get_args(texts):
        assert getattr(Serial("s", **{name: text}), name) == text
    with pytest.raises(InvalidOption, match=" or ".join(map(repr, get_args(texts)))):
        Serial("s", **{name: "wait"})  # type: ignore[arg-type]
