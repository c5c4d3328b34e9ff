"""The channel carries plain values exactly, and nothing else."""

import math
from collections import Counter, OrderedDict, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpredflow.sandbox.inside.values import MAX_DEPTH, Malformed, NotPlain, dump, load

hashable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.floats(allow_nan=False),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
plain = st.recursive(
    hashable | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.sets(hashable, max_size=3)
        | st.tuples(inner)
    ),
    max_leaves=10,
)


def types(value):
    if isinstance(value, dict):
        return [(types(k), types(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [types(item) for item in value]
    return type(value)


@given(plain)
def test_plain_values_come_back_with_their_types(value):
    back = load(dump(value))
    assert back == value
    assert types(back) == types(value)


def test_odd_numbers_come_back():
    assert math.isnan(load(dump(math.nan)))
    assert load(dump([math.inf, -math.inf])) == [math.inf, -math.inf]
    assert math.copysign(1, load(dump(-0.0))) == -1
    assert load(dump(-(7**9000))) == -(7**9000)
    assert load(dump("\ud800")) == "\ud800"


class Loud(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    "value",
    [
        *(Loud(3), [Loud(3)], {Loud(3): 1}, (1, {"a": Loud(2)}), Counter("a"), OrderedDict()),
        *(namedtuple("P", "x")(1), object(), int, len, iter([]), bytearray(b"a"), range(3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_types_are_rejected(value):
    with pytest.raises(NotPlain):
        dump(value)


def test_deep_and_cyclic_values_are_rejected():
    cycle = []
    cycle.append(cycle)
    deep = []
    for _ in range(MAX_DEPTH):
        deep = [deep]
    for value in (cycle, deep):
        with pytest.raises(NotPlain):
            dump(value)


@pytest.mark.parametrize(
    "data",
    [
        *(
            b"",
            b"\xff",
            b"{",
            b'{"d":[1]}',
            b'{"x":1}',
            b'{"i":"zz"}',
            b'{"s":[[1]]}',
            b"[" * 10**5,
        ),
        *(b'{"t":1}', b'{"c":[1]}', b'{"r":0}', b'{"t":[],"s":[]}', b"{}", b"9" * 5000),
    ],
    ids=lambda data: data[:20],
)
def test_malformed_bytes_are_rejected(data):
    with pytest.raises(Malformed):
        load(data)
