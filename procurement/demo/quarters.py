"""What the calendar brings: budgets, rates of exchange, and the quarters' reviews."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from decimal import Decimal

from catalog.services.rates import add_rate
from core.quarters import Quarter
from planning.management.commands.load_demo import load_organisation
from planning.models import CapacityReview
from planning.services import review_meeting, review_work, reviews
from procurement.demo.stage import ZONE, Stage, Story
from procurement.services.reviews import freeze_due_reviews

BEGUN = 126  # days ago
RATES = ((124, "7.1203", "5.5480"), (96, "7.1048", "5.5512"), (68, "7.0921", "5.5390"), (40, "7.0874", "5.5471"),
         (16, "7.0812", "5.5446"))  # fmt: skip


def quarters_of(s: Stage) -> list[Quarter]:
    """From the one in which the demo begins to the one after today's."""
    found = [Quarter.of(s.day(BEGUN))]
    while found[-1].start <= s.today:
        found.append(found[-1].next())
    return found


def begin(s: Stage) -> Story:
    """The organisation is set up, and its first quarter's review is scheduled."""
    yield s.office(BEGUN, 9)
    load_organisation(quarters_of(s))
    reviews.ensure_reviews()
    review_meeting.invite_missing()


def rates(s: Stage) -> Story:
    """Finance notes the month's rates."""
    for ago, usd, sgd in RATES:
        yield s.office(ago, 9, 15)
        for base, rate in (("USD", usd), ("SGD", sgd)):
            add_rate(
                base=base, quote="CNY", rate=Decimal(rate), as_of=s.day(ago + 2),
                source="示例汇率 Example rate, not of a bank", by=s.he,
            )  # fmt: skip


def reviewed(s: Stage) -> Story:
    """Each quarter that ends is frozen; its pack is drawn by the worker. Teams had told their plans before."""
    for period in quarters_of(s)[1:-1]:
        eve = period.start - timedelta(days=5)
        if eve > s.day(BEGUN - 10):
            yield datetime.combine(eve, time(11), ZONE)
            _plans(s, period.shift(-1))
        yield datetime.combine(period.start, time(0, 20), ZONE)
        reviews.ensure_reviews()
        review_meeting.invite_missing()
        freeze_due_reviews()


PLANS = (
    ("foundation", "lin", 24, "预训练扩容 16 卡到货后共 24 卡；微调维持现状。"),
    ("search", "ming", 16, "Recall moves to GPU, ads ranking follows; nothing beyond the two open requests."),
)  # fmt: skip


def _plans(s: Stage, ending: Quarter) -> None:
    review = CapacityReview.objects.get(team=None, fiscal_year=ending.year, quarter=ending.q)
    for slug, name, cards, text in PLANS:
        review_work.tell_plan(
            review_id=review.pk, team=s.team(slug), cards=cards, text=text, by=getattr(s, name)
        )
