"""What ends soon: reservations by their plans, warranties and cloud commitments as procurement hands them down."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.utils import translation

from planning.actuals import TERMS_AHEAD, CommitmentLeft, QuarterActuals, WarrantyEnd
from planning.calibration.pools import Action, PoolState, advise
from planning.models import CapacityReview
from planning.review_changes import changes
from planning.review_pack import build_pack
from planning.selectors.reserved import Reserved
from planning.selectors.review_use import _by_pool, _terms
from planning.services import reviews

START = date(2027, 1, 1)  # of the quarter that is decided about


def held(last, *, cards=16, request="R-0001", mode="reserved_1y"):
    return Reserved(request, "Chat", "chat", "h100-sxm-80gb", cards, mode, date(2026, 1, 1), last)


def pool(*terms, busy=12.0, price=2.0):
    return PoolState(
        "a", "h100", "reserved", 16, 0.75, busy_low=busy - 1, busy=busy, busy_high=busy + 1, queue=600.0,
        price_hour=price, terms=terms, next_from=START,
    )  # fmt: skip


def told(advice):
    return " ".join(line.render() for line in advice.lines)


def test_a_renewal_s_wait_costs_the_card_hours_that_the_term_leaves_open():
    # 31 of 91.25 days are still held: 60.25 days of 16 cards at 2.00
    (advice,) = advise([pool((date(2027, 1, 31), 16))])
    assert advice.action is Action.RENEW
    assert advice.waiting == pytest.approx(16 * 24 * 60.25 * 2.0)
    assert "2027-01-31" in told(advice)
    # two terms, one of which outlasts the quarter
    (parted,) = advise([pool((date(2027, 1, 31), 4), (date(2027, 12, 31), 12))])
    assert parted.waiting == pytest.approx(4 * 24 * 60.25 * 2.0)


def test_a_term_that_outlasts_the_quarter_costs_nothing_yet_and_an_unknown_one_is_said():
    (long,) = advise([pool((date(2027, 12, 31), 16))])
    assert long.waiting == 0
    (unknown,) = advise([pool()])
    assert unknown.waiting is None
    assert "not known" in told(unknown)
    (unpriced,) = advise([pool((date(2027, 1, 31), 16), price=None)])
    assert unpriced.waiting is None
    assert "no price on demand" in told(unpriced)


def test_each_of_the_six_kinds_shows_what_waiting_costs():
    base = {"queue": 600.0, "price_hour": 2.0}

    def of(key, use, busy, **more):
        return PoolState(key, more.pop("card", key), more.pop("ownership", "owned"), 64, use, busy_low=busy - 2,
                         busy=busy, busy_high=busy + 2, **(base | more))  # fmt: skip

    states = [
        of("grow", 0.95, 70.0), of("hold", 0.6, 40.0), of("shrink", 0.1, 5.0),
        of("fix", 0.1, 5.0, queue=2 * 86_400.0), of("move", 0.95, 60.0, card="x"),
        of("gives", 0.1, 5.0, card="x"), of("renew", 0.7, 45.0, ownership="reserved", terms=((START, 64),),
                                         next_from=START),
        of("drop", 0.1, 5.0, ownership="reserved"),
    ]  # fmt: skip
    found = {advice.pool.key: advice for advice in advise(states)}
    for key in ("grow", "hold", "shrink", "fix", "move", "renew", "drop"):
        assert found[key].action is Action(key)
        assert found[key].waiting is not None
        assert (found[key].waiting == 0) is (key == "hold")
        if key != "hold":
            assert "2.0" in told(found[key]), key


@pytest.mark.django_db
def test_only_what_ends_within_reach_is_listed_and_an_unknown_end_is_a_hole(review):
    period, holes = review.period, []
    inside = period.end + TERMS_AHEAD - timedelta(days=1)
    rows = [
        held(inside), held(period.end + TERMS_AHEAD, request="R-0002"), held(None, request="R-0003"),
    ]  # fmt: skip
    actuals = QuarterActuals(
        warranties=(WarrantyEnd("PO-1", "浪潮", "Chat", "node", "", 4, period.end),),
        commitments=(CommitmentLeft("PO-2", "Cloud", "", "", "h", Decimal(900), Decimal("450.5"), None),),
    )  # fmt: skip
    lines = _terms(rows, actuals, period, holes)
    assert [(r["what"], r["source"], r["number"]) for r in lines] == [
        ("reservation", "R-0001", 16), ("reservation", "R-0003", 16), ("commitment", "PO-2", 450.5),
        ("warranty", "PO-1", 4),
    ]  # fmt: skip
    assert [h.params for h in holes] == [{"n": 1}]


def test_terms_join_their_pool_and_one_that_ended_in_the_quarter_is_over():
    rows = [held(START), held(START - timedelta(days=1)), held(None), held(START, cards=8)]
    assert _by_pool(rows, START) == {
        ("chat", "h100-sxm-80gb", "reserved"): ((START, 8), (START, 16))
    }


@pytest.fixture
def review(organisation):
    return reviews.ensure_reviews()[0]


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_pack_names_the_orders_the_units_and_the_day(review, language):
    ends = review.period.end + timedelta(days=3)
    actuals = QuarterActuals(
        warranties=(
            WarrantyEnd("PO-2026-0007", "浪潮", "", "accelerator", "h100-sxm-80gb", 32, ends),
        )
    )
    first = reviews.freeze_review(review_id=review.pk, actuals=QuarterActuals(), by=None)
    second = reviews.freeze_review(review_id=review.pk, actuals=actuals, by=None)
    with translation.override(language):
        pack = build_pack(second.data, number=2)
        (section,) = [s for s in pack.sections if s.title == translation.gettext("Terms that end")]
    cells = [cell for table in section.tables for row in table.rows for cell in row]
    assert {"PO-2026-0007", "浪潮", "32"} <= set(cells)
    assert any("32" in sentence for sentence in section.sentences)
    assert any(c.part == "terms" and c.field == "number" for c in changes(first.data, second.data))
    assert CapacityReview.objects.count() == 1
    old = {k: v for k, v in second.data.items() if k != "terms"}  # frozen before terms were read
    assert len(build_pack(old, number=1).sections) == len(pack.sections) - 1
