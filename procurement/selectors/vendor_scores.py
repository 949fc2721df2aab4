"""What a vendor's history says: deliveries in time, units that passed their burn-in, returns settled, RFQs answered.

Each part is a share with its 95 % interval (Wilson) and the counts behind it. Below `MIN_POINTS` a part has no score:
too little is known, which is not a bad mark. The score is the plain mean of the parts that have one, from 0 to 100.
Read from what the reader may see; five queries for any number of vendors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from statistics import median
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from core.models import User
from core.organisation import local_day
from procurement.failure_rates import Interval, TurnAround, share_interval, turn_around
from procurement.models import (
    BurnInRun,
    Delivery,
    PurchaseOrder,
    Quote,
    Rfq,
    RfqInvitation,
    Rma,
    Vendor,
)
from procurement.states import (
    BIDDEN_RFQ,
    OPEN_RMA,
    BurnInStatus,
    DeliveryStatus,
    OrderStatus,
    QuoteStatus,
    RfqStatus,
    RmaStatus,
)

MIN_POINTS = 5  # below, a part says how few there are instead of a score
RETURN_DAYS = 30  # a return settled within so many days counts as settled in time [d]
DAY_SECONDS = 86400


@dataclass(frozen=True, slots=True)
class Part:
    """`good` of `points`, as a share."""

    key: str  # delivery, quality, returns, response
    good: int
    points: int

    @property
    def share(self) -> Interval | None:
        return share_interval(self.good, self.points)

    @property
    def is_known(self) -> bool:
        return self.points >= MIN_POINTS

    @property
    def score(self) -> int | None:
        """0 to 100; None where there are too few points."""
        return round(100 * self.good / self.points) if self.is_known else None

    def to_json(self) -> dict[str, Any]:
        share = self.share
        return {
            "good": self.good,
            "points": self.points,
            "needed": MIN_POINTS,
            "score": self.score,
            "share": None if share is None else share.value,
            "low": None if share is None else share.low,
            "high": None if share is None else share.high,
        }


@dataclass(slots=True)
class VendorScore:
    """The history of one vendor."""

    late_days: list[int] = field(default_factory=list)  # of each delivery; early is below 0
    overdue_days: list[int] = field(default_factory=list)  # of orders due of which nothing came
    burned: int = 0  # units whose burn-in ended
    failed: int = 0
    settled: list[float] = field(default_factory=list)  # days of each return
    open_claims: list[float] = field(default_factory=list)
    asked: int = 0
    answered: int = 0

    @property
    def delivery(self) -> Part:
        """Deliveries on or before the promised day. An order that is due and of which nothing came counts as late."""
        late = [days for days in self.late_days if days > 0]
        points = len(self.late_days) + len(self.overdue_days)
        return Part("delivery", len(self.late_days) - len(late), points)

    @property
    def quality(self) -> Part:
        """Units that did not fail their burn-in."""
        return Part("quality", self.burned - self.failed, self.burned)

    @property
    def returns(self) -> Part:
        """Returns settled in time; an open one counts once it has waited longer."""
        good = sum(days <= RETURN_DAYS for days in self.settled)
        slow = sum(days > RETURN_DAYS for days in self.open_claims)
        return Part("returns", good, len(self.settled) + slow)

    @property
    def response(self) -> Part:
        """RFQs that were answered in time, of those whose deadline has passed."""
        return Part("response", self.answered, self.asked)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.delivery, self.quality, self.returns, self.response)

    @property
    def known(self) -> int:
        return sum(part.is_known for part in self.parts)

    @property
    def score(self) -> int | None:
        scores = [part.score for part in self.parts if part.score is not None]
        return round(sum(scores) / len(scores)) if scores else None

    @property
    def failed_share(self) -> Interval | None:
        return share_interval(self.failed, self.burned)

    @property
    def median_late_days(self) -> float | None:
        """Of deliveries, early ones below 0. [d]"""
        return median(self.late_days) if self.late_days else None

    @property
    def worst_late_days(self) -> int | None:
        return max([*self.late_days, *self.overdue_days], default=None)

    @property
    def turn_around(self) -> TurnAround:
        return turn_around(self.settled, self.open_claims)

    def to_json(self) -> dict[str, Any]:
        share, days = self.failed_share, self.turn_around
        return {
            "score": self.score,
            "parts_known": self.known,
            "parts": {part.key: part.to_json() for part in self.parts},
            "median_late_days": self.median_late_days,
            "worst_late_days": self.worst_late_days,
            "overdue_orders": len(self.overdue_days),
            "burned_in": self.burned,
            "failed_burn_in": self.failed,
            "failed_share": None if share is None else [share.value, share.low, share.high],
            "returns_settled": days.resolved,
            "returns_median_days": days.median_days,
            "returns_open": days.open,
            "returns_longest_open_days": days.longest_open_days,
        }


def vendor_scores(
    vendors: Iterable[Vendor], user: User, now: datetime | None = None
) -> dict[int, VendorScore]:
    """The history of each of `vendors`, by id, from what `user` may see."""
    now = now or timezone.now()
    ids = [vendor.pk for vendor in vendors]
    found: dict[int, VendorScore] = defaultdict(VendorScore) | {pk: VendorScore() for pk in ids}
    _deliveries(found, ids, user, local_day(now))
    _burn_ins(found, ids, user)
    _returns(found, ids, user, now)
    _responses(found, ids, user, now)
    return found


def _deliveries(
    found: dict[int, VendorScore], ids: Collection[int], user: User, today: date
) -> None:
    rows = (
        Delivery.objects.visible_to(user)
        .filter(vendor__in=ids, status=DeliveryStatus.POSTED)
        .values_list("vendor", "arrived_on", "order__promised_on", "order__expected_on")
    )
    for vendor, arrived, promised, expected in rows:
        due = promised or expected
        if due is not None and arrived is not None:
            found[vendor].late_days.append((arrived - due).days)
    posted = Delivery.objects.filter(order=OuterRef("pk"), status=DeliveryStatus.POSTED)
    waiting = (
        PurchaseOrder.objects.visible_to(user)
        .filter(vendor__in=ids, status__in=[OrderStatus.ISSUED, OrderStatus.ACKNOWLEDGED])
        .exclude(Exists(posted))
        .values_list("vendor", "promised_on", "expected_on")
    )
    for vendor, promised, expected in waiting:
        due = promised or expected
        if due is not None and due < today:
            found[vendor].overdue_days.append((today - due).days)


def _burn_ins(found: dict[int, VendorScore], ids: Collection[int], user: User) -> None:
    rows = (
        BurnInRun.objects.filter(
            delivery__in=Delivery.objects.visible_to(user),
            delivery__vendor__in=ids,
            status__in=[BurnInStatus.PASSED, BurnInStatus.FAILED],
        )
        .values("delivery__vendor")
        .annotate(
            burned=Count("asset", distinct=True),
            failed=Count("asset", distinct=True, filter=Q(status=BurnInStatus.FAILED)),
        )
        .order_by()
    )
    for row in rows:
        score = found[row["delivery__vendor"]]
        score.burned, score.failed = row["burned"], row["failed"]


def _returns(
    found: dict[int, VendorScore], ids: Collection[int], user: User, now: datetime
) -> None:
    rows = (
        Rma.objects.visible_to(user)
        .filter(vendor__in=ids, filed_at__isnull=False)
        .exclude(status=RmaStatus.WITHDRAWN)
        .values_list("vendor", "filed_at", "resolved_at", "status")
    )
    for vendor, filed, resolved, status in rows:
        if filed is None:  # left out above; the types do not know
            continue
        if resolved is not None:
            found[vendor].settled.append((resolved - filed).total_seconds() / DAY_SECONDS)
        elif status in OPEN_RMA:
            found[vendor].open_claims.append((now - filed).total_seconds() / DAY_SECONDS)


def _responses(
    found: dict[int, VendorScore], ids: Collection[int], user: User, now: datetime
) -> None:
    in_time = Quote.objects.filter(rfq=OuterRef("rfq"), vendor=OuterRef("vendor")).exclude(
        status__in=[QuoteStatus.LATE, QuoteStatus.WITHDRAWN, QuoteStatus.SUPERSEDED]
    )
    rows = (
        RfqInvitation.objects.filter(vendor__in=ids, rfq__in=Rfq.objects.visible_to(user))
        .filter(
            Q(rfq__status__in=BIDDEN_RFQ) | Q(rfq__status=RfqStatus.OPEN, rfq__deadline__lte=now)
        )
        .values_list("vendor", Exists(in_time))
    )
    for vendor, answered in rows:
        found[vendor].asked += 1
        found[vendor].answered += bool(answered)
