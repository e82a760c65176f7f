"""Arguments and results as JSON: what goes in comes out, and what cannot is named."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from types import MappingProxyType
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.http import QueryDict
from django.http.request import HttpHeaders
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.utils.safestring import mark_safe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_tenantqueue import task
from django_tenantqueue.calls.arguments import MARK, decode_args, encode_args, encode_result
from django_tenantqueue.exceptions import InvalidArgument, InvalidResult, Permanent
from django_tenantqueue.models import Job
from django_tenantqueue.text import clean_text
from tests.testapp.models import Report
from tests.testapp.tasks import echo


@task
def keeps_anything(**named: object) -> None:
    """Take whatever there is."""


texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)))
floats = st.floats(allow_nan=False, allow_infinity=False)
zones = st.sampled_from([None, UTC, timezone.get_fixed_timezone(90), ZoneInfo("Europe/Berlin")])
moments = st.datetimes(timezones=zones, allow_imaginary=False)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | floats
    | texts
    | moments
    | st.dates()
    | st.times()
    | st.timedeltas(timedelta(days=-9999), timedelta(days=9999))
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.uuids()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(texts.filter(lambda key: key != MARK), inner, max_size=4)
    ),
    max_leaves=12,
)
keywords = st.dictionaries(st.from_regex("[a-z]{1,5}", fullmatch=True), values, max_size=3)


@given(st.lists(values, max_size=4), keywords)
def test_arguments_come_back_equal_and_of_the_same_type_when_they_were_encoded(args, kwargs):
    loaded_args, loaded_kwargs = decode_args(encode_args(tuple(args), kwargs))

    assert loaded_args == args
    assert loaded_kwargs == kwargs
    assert kinds(loaded_args) == kinds(args)


def kinds(value: object) -> object:
    """Return the types in a value: 1, 1.0, True and Decimal(1) are equal."""
    if isinstance(value, dict):
        return {key: kinds(inner) for key, inner in value.items()}
    return [kinds(inner) for inner in value] if isinstance(value, list) else type(value)


def test_time_that_the_clocks_skip_comes_back_as_the_same_moment_when_it_was_encoded():
    skipped = datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    (loaded,), _ = decode_args(encode_args((skipped,), {}))

    assert loaded.timestamp() == skipped.timestamp()
    assert loaded.hour == 3
    assert loaded.tzinfo == ZoneInfo("Europe/Berlin")


@pytest.mark.django_db
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(values)
def test_arguments_come_back_equal_when_the_database_kept_them(value):
    job = echo.using(tenant="acme").delay(value)

    args, kwargs = decode_args(json.dumps(Job.objects.get(pk=job.pk).args))

    assert args == [value]
    assert kwargs == {}


anything = st.recursive(
    scalars
    | st.floats()
    | st.text()
    | st.binary()
    | st.builds(object)
    | st.sampled_from([math.nan, math.inf, "\x00", "\ud800", "\\u0000"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.integers() | st.just(MARK), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(anything)
def test_call_is_stored_as_it_is_or_refused_when_it_is_anything(value):
    try:
        text = encode_args((value,), {})
    except InvalidArgument:
        return
    text.encode()
    assert "\x00" not in json.dumps(json.loads(text), ensure_ascii=False)
    args, _ = decode_args(text)
    assert args == [value]


@given(anything)
def test_result_is_stored_or_refused_when_it_is_anything(value):
    try:
        text = encode_result(value)
    except InvalidResult:
        return
    if text is not None:
        text.encode()
        assert "\x00" not in json.dumps(json.loads(text), ensure_ascii=False)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((object(),), {}, "argument 1 is of type object: pass something JSON can carry"),
        ((1, {2}), {}, "argument 2 is of type set: pass something"),
        ((), {"when": b"raw"}, "argument 'when' is of type bytes"),
        (([1, [object()]],), {}, "argument 1[1][0] is of type object"),
        (({"a": {"b": object()}},), {}, "argument 1['a']['b'] is of type object"),
        ((math.nan,), {}, "argument 1 is nan, which JSON cannot carry"),
        (([math.inf],), {}, "argument 1[0] is inf"),
        (("a\x00b",), {}, "argument 1 contains a NUL character"),
        (({"a\x00": 1},), {}, "a key of argument 1 contains a NUL"),
        (("\ud800",), {}, "argument 1 contains a lone surrogate"),
        (({1: 2},), {}, "argument 1 has the key 1: keys must be str"),
        (({None: 2},), {}, "argument 1 has the key None: keys must be str"),
        ((({MARK: "datetime"},),), {}, f"argument 1[0] has the key '{MARK}', which is reserved"),
    ],
)
def test_argument_is_named_when_it_cannot_be_stored(args, kwargs, message):
    with pytest.raises(InvalidArgument) as caught:
        encode_args(args, kwargs)

    assert message in str(caught.value)


def test_arguments_are_refused_when_they_contain_themselves():
    loop: list[object] = []
    loop.append(loop)

    with pytest.raises(InvalidArgument, match="or contains itself"):
        encode_args((loop,), {})


def test_text_is_kept_when_it_looks_like_an_escape():
    assert decode_args(encode_args(("\\u0000", MARK), {}))[0] == ["\\u0000", MARK]


def test_tuples_become_lists_when_they_come_back():
    assert decode_args(encode_args(((1, (2, 3)),), {}))[0] == [[1, [2, 3]]]


def test_plain_values_stay_plain_when_they_are_stored():
    text = encode_args((1, "é", None), {"flag": True})

    assert json.loads(text) == {"args": [1, "é", None], "kwargs": {"flag": True}}


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
        date(2026, 2, 28),
        time(23, 59, 59, 999999),
        timedelta(days=-1, microseconds=1),
        Decimal("1.10"),
        UUID(int=5),
    ],
    ids=repr,
)
def test_value_is_equal_when_it_comes_back(value):
    assert decode_args(encode_args((value,), {}))[0] == [value]


@pytest.mark.django_db
def test_instance_is_loaded_when_the_arguments_are_decoded():
    report = Report.objects.create(title="Sales")
    text = encode_args((report,), {"more": [report]})
    Report.objects.update(title="Later")

    args, kwargs = decode_args(text)

    assert args == [report]
    assert kwargs == {"more": [report]}
    assert args[0].title == "Later"


@pytest.mark.django_db
def test_decoding_fails_for_good_when_the_instance_is_gone():
    report = Report.objects.create(title="Sales")
    text = encode_args((report,), {})
    report.delete()

    with pytest.raises(Permanent, match=r"testapp\.Report .* does not exist any more"):
        decode_args(text)


@pytest.mark.django_db
def test_instance_is_refused_when_it_is_not_saved():
    with pytest.raises(InvalidArgument, match=r"argument 1 is a testapp\.Report that is not saved"):
        encode_args((Report(title="new"),), {})


def test_decoding_fails_for_good_when_the_model_is_gone():
    entry = {MARK: "model", "model": "gone.model", "value": 1, "using": "default"}

    with pytest.raises(Permanent, match=r"'gone.model' of an argument does not exist any more"):
        decode_args(json.dumps({"args": [entry]}))


def test_decoding_fails_for_good_when_a_type_is_unknown():
    with pytest.raises(Permanent, match="unknown type 'colour'"):
        decode_args(json.dumps({"args": [{MARK: "colour", "value": "red"}]}))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a\x00", "the result contains a NUL character"),
        ([{"\x00": 1}], "the result contains a NUL character"),
        (["\udfff"], "the result contains a lone surrogate"),
        (math.nan, "the result cannot be stored as JSON"),
        (object(), "the result cannot be stored as JSON"),
    ],
)
def test_result_is_refused_when_it_cannot_be_stored(value, message):
    with pytest.raises(InvalidResult, match=message):
        encode_result(value)


def test_result_is_kept_when_it_looks_like_an_escape():
    assert json.loads(encode_result(["\\u0000"]) or "") == ["\\u0000"]


def test_result_is_nothing_when_it_is_none():
    assert encode_result(None) is None


@given(st.text())
def test_text_can_be_stored_when_it_was_cleaned(text):
    cleaned = clean_text(text)

    cleaned.encode()
    assert "\x00" not in cleaned


def test_middle_is_left_out_when_a_text_is_too_long():
    cleaned = clean_text("a" * 100 + "b" * 100, 50)

    assert cleaned.startswith("a" * 25)
    assert cleaned.endswith("b" * 25)
    assert "150 characters left out" in cleaned


class Colour(IntEnum):
    RED = 1


class Text(str):
    """A str of its own."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Colour.RED, "argument 1 is of type Colour and would come back as int: pass .value"),
        (mark_safe("<b>"), "is of type SafeString and would come back as str: pass str"),
        ([{"a": Text("x")}], r"argument 1\[0\]\['a'\] is of type Text"),
        (10**5000, "argument 1 is an int of more than 14,000 bits"),
        (time(1, 2, tzinfo=ZoneInfo("Europe/Berlin")), "is a time in Europe/Berlin, whose offset"),
        (
            QueryDict("tag=a&tag=b"),
            "argument 1 is a QueryDict, and only the last value of each key",
        ),
        ([MultiValueDict()], r"argument 1\[0\] is a MultiValueDict, and only the last value"),
        ({"a": MappingProxyType({})}, r"1\['a'\] is of type mappingproxy: pass dict\(…\) of it"),
        (HttpHeaders({}), "argument 1 is of type HttpHeaders: pass dict"),
    ],
    ids=[
        *("enum", "safe", "subclass", "long", "time"),
        *("form", "several values", "mapping", "headers"),
    ],
)
def test_argument_is_refused_when_it_would_come_back_changed(value, message):
    with pytest.raises(InvalidArgument, match=message):
        encode_args((value,), {})


@pytest.mark.parametrize(
    "value",
    [
        -0.0,
        1e300,
        [1e16, {"a": -0.0}],
        time(1, 2, 3, tzinfo=UTC),
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 10, 25, 2, 30, fold=0, tzinfo=ZoneInfo("Europe/Berlin")),
    ],
    ids=str,
)
@pytest.mark.django_db
def test_argument_comes_back_from_the_database_as_it_was(value):
    job = Job.objects.get(pk=echo.delay(value).pk)

    (loaded,), _ = decode_args(json.dumps(job.args))

    assert repr(loaded) == repr(value)


@pytest.mark.parametrize(
    "kind", ["model", "float", "tenant", "removed", "star", None, ["model"], {"a": 1}]
)
@pytest.mark.django_db
def test_reserved_key_is_refused_at_every_level(kind: object) -> None:
    entry = {MARK: kind, "model": "testapp.report", "value": 1}
    calls: list[tuple[tuple[object, ...], dict[str, object]]] = [
        ((), entry),
        ((entry,), {}),
        (([{"deep": (entry,)}],), {}),
        ((), {"value": {"deep": [entry]}}),
    ]
    for args, kwargs in calls:
        with pytest.raises(InvalidArgument, match="reserved"):
            encode_args(args, kwargs)
    with pytest.raises(InvalidArgument, match="reserved"):
        keeps_anything.delay(**entry)

    assert not Job.objects.exists()


@pytest.mark.parametrize("levels", [101, 500, 900, 5000])
@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_argument_is_refused_when_it_is_nested_too_deeply(levels, wrap):
    value = 1
    for _ in range(levels):
        value = wrap(value)

    with pytest.raises(InvalidArgument, match="argument 1 is nested more than 100 levels deep"):
        encode_args((value,), {})
    with pytest.raises(InvalidArgument, match="argument 'a' is nested more than 100 levels"):
        encode_args((), {"a": value})


def test_argument_is_stored_when_it_has_a_hundred_levels():
    value = []
    for _ in range(99):
        value = [value]

    assert decode_args(encode_args((value,), {})) == ([value], {})


@pytest.mark.parametrize("name", ["a\x00", "\ud800"])
def test_name_of_an_argument_is_refused_when_it_cannot_be_stored(name):
    with pytest.raises(InvalidArgument, match="the name of argument"):
        encode_args((), {name: 1})
