import json

import pytest

from core.messages import shown
from core.strict_json import JSONProblem, read_json


def test_what_is_well_formed_is_read_as_it_is():
    text = '{"名": ["七", 7, 0.5, null, true, {"a": -1e300}]}'
    assert read_json(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{", ""),
        ("", ""),
        ("[" * 100_000, ""),
        ('{"a": ' * 70 + "1" + "}" * 70, "a"),
        ('{"a": {"b": NaN}}', "a.b"),
        ('{"a": 1e999}', "a"),
        ('{"a": [-Infinity]}', "a"),
        ('{"a": "\\ud800"}', "a"),
        ('{"\\udc00": 1}', ""),
        ('{"a": "x\\u0000"}', "a"),
        ('{"a": 1, "a": 2}', "a"),
        ("9" * 5000, ""),
    ],
)
def test_what_no_answer_can_hold_is_refused_with_its_place(text, path):
    with pytest.raises(JSONProblem) as raised:
        read_json(text)
    assert raised.value.path == path
    said = json.dumps([str(raised.value.message.render()), raised.value.value], ensure_ascii=False)
    assert len(said.encode()) < 600


def test_a_value_is_shown_short_and_whole():
    assert shown("abc") == "abc"
    assert len(shown("x" * 500)) == 100
    assert shown(10**400).startswith("1000")
    assert shown("\ud800").encode()
    assert shown(-5) == "-5"
    assert shown(True) == "True"
