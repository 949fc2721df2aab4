"""Messages of pure code: the singular after the number one, messages inside messages, and what is stored of them."""

import pytest

from core.messages import Message, msg


@pytest.mark.parametrize(
    ("template", "params", "said"),
    [
        ("%(n)s in %(servers)s servers", {"n": 8, "servers": 1}, "8 in 1 server"),
        ("%(n)s in %(servers)s servers", {"n": 8, "servers": 2}, "8 in 2 servers"),
        ("%(n)s cards are not accepted yet", {"n": 1}, "1 card is not accepted yet"),
        ("%(a)s of %(b)s hours covered", {"a": 1, "b": 72}, "1 of 72 hours covered"),
        (
            "%(free)s free racks hold %(each)s servers each",
            {"free": 3, "each": 1},
            "3 free racks hold 1 server each",
        ),
        ("%(n)s entries are left", {"n": "1"}, "1 entry is left"),
        ("Line %(line)s names no job", {"line": 1}, "Line 1 names no job"),
        ("Line %(line)s requests nothing", {"line": 1}, "Line 1 requests nothing"),
        ("%(years)s years", {"years": 1.5}, "1.5 years"),
    ],
)
def test_what_is_counted_is_singular_after_one(template, params, said):
    assert str(Message(template, params)) == said


def test_a_translation_is_taken_as_it_is():
    assert (
        msg("%(n)s cards failed", n=1).render({"%(n)s cards failed": "%(n)s 张卡未通过"}.get)
        == "1 张卡未通过"
    )


def test_a_message_inside_a_message_is_translated_and_survives_storing():
    words = {"%(field)s is missing": "缺少%(field)s", "Price": "价格"}
    whole = msg("%(field)s is missing", field=msg("Price"))
    again = Message.from_json(whole.to_json())
    assert again == whole
    assert again.render(lambda text: words.get(text, text)) == "缺少价格"
    assert str(again) == "Price is missing"


def test_pages_write_days_as_the_reader_does():
    from django.utils import translation

    from core.templatetags.ui import said

    late = msg("The delivery is due on %(day)s", day="2027-01-31")
    assert said(late) == "The delivery is due on 31 Jan 2027"
    with translation.override("zh-hans"):
        assert "2027" in said(late)
        assert "2027-01-31" not in said(late)
    typed = msg(
        "%(field)s: %(value)s is not a date; write year-month-day",
        field="need_by",
        value="2027-02-30",
    )
    assert "2027-02-30" in said(typed)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Training tokens", "Training tokens are missing"),
        ("Model", "Model is missing"),
        ("tokens", "tokens are missing"),
        ("training_tokens", "training_tokens is missing"),
        ("Duration in days (at most)", "Duration in days (at most) is missing"),
    ],
)
def test_a_plural_name_takes_its_verb(name, said):
    assert str(msg("%(field)s is missing", field=name)) == said
