"""One request from need to accepted GPU-hours: where it is, who has it, what blocks it, since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from catalog.reference import accelerator_label
from core.messages import Message, msg, plural
from core.models import User
from core.money import Money
from core.organisation import today
from planning.models import CapacityRequest
from planning.selectors.approvals import deciders
from planning.states import RequestStatus, StepStatus
from procurement.models import (
    Acceptance,
    Asset,
    BurnInRun,
    Delivery,
    PurchaseOrder,
    Rfq,
    Rma,
)
from procurement.models.assets import AssetKind
from procurement.selectors.delivery_risk import risk_facts
from procurement.selectors.progress import accepted_accelerators, line_progress
from procurement.states import (
    GONE_RFQ,
    OPEN_RMA,
    AcceptanceStatus,
    AssetStatus,
    AwardStatus,
    BurnInStatus,
    DeliveryStatus,
    OrderStatus,
    RfqStatus,
)

DONE, CURRENT, TODO, FAILED = "done", "current", "todo", "failed"
PROCUREMENT, OPERATIONS = msg("Procurement"), msg("Operations")


@dataclass(frozen=True, slots=True)
class Link:
    """Something to open; `obj` is a row with get_absolute_url."""

    label: str
    obj: Any


@dataclass(slots=True)
class Stage:
    """One stage of the way. `holders` are names of people, or Messages that name a function."""

    key: str
    label: Message
    state: str = TODO
    since: datetime | None = None
    holders: list[Any] = field(default_factory=list)
    facts: list[Message] = field(default_factory=list)
    blocked_by: Message | None = None
    links: list[Link] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Thread:
    """Stages in order, and the answer to the four questions at the top."""

    request: CapacityRequest
    stages: tuple[Stage, ...]
    asked: int | None  # accelerators
    received: int
    accepted: int
    failed: int
    gpu_hours: float  # accepted accelerators × hours in service so far
    objects: tuple[Any, ...]  # rows of the thread, for its trail

    @property
    def received_text(self) -> str:
        return str(self.received)

    @property
    def accepted_text(self) -> str:
        return str(self.accepted)

    @property
    def hours_text(self) -> str:
        return f"{self.gpu_hours:,.1f}"

    @property
    def current(self) -> Stage | None:
        """The stage it is at; None when it came to its end."""
        return next((stage for stage in self.stages if stage.state in (CURRENT, FAILED)), None)


def request_thread(request: CapacityRequest, user: User) -> Thread:
    """The thread of `request`, as far as `user` may open its parts. The caller has checked that the request is theirs.

    Vendor prices are not part of it before an order exists.
    """
    plan: Any = getattr(request.current, "plan", None)
    rfqs = list(
        Rfq.objects.filter(lines__request=request).select_related("owner").distinct().order_by("pk")
    )
    orders = list(
        PurchaseOrder.objects.filter(lines__request=request)
        .exclude(status=OrderStatus.CANCELLED)
        .select_related("vendor", "issued_by", "award__rfq__owner")
        .distinct()
        .order_by("pk")
    )
    deliveries = list(
        Delivery.objects.filter(order__in=orders).select_related("vendor", "received_by", "order")
    )
    cards = list(
        Asset.objects.filter(request=request, kind=AssetKind.ACCELERATOR)
        .exclude(status=AssetStatus.VOIDED)
        .order_by("serial")
    )
    accepted = accepted_accelerators(request.pk)
    opens = _visible(user, rfqs, orders, deliveries)
    stages = [
        _need(request),
        _plan(request, plan),
        _approval(request),
        _quotes(request, rfqs, opens),
        _award(rfqs, opens),
        _order(orders, opens),
        _delivery(request, orders, deliveries, opens),
        _burn_in(deliveries, cards, accepted, plan, opens),
        _acceptance(deliveries, cards, accepted, plan, opens),
        _service(request, cards, accepted, plan),
    ]
    _settle(request, stages)
    return Thread(
        request=request,
        stages=tuple(stages),
        asked=plan.cards if plan else None,
        received=len([card for card in cards if card.replaces_id is None]),
        accepted=accepted,
        failed=len(
            [
                card
                for card in cards
                if card.status in (AssetStatus.DEFECTIVE, AssetStatus.AT_VENDOR)
            ]
        ),
        gpu_hours=service_hours(cards),
        objects=(request, *rfqs, *orders, *deliveries),
    )


def service_hours(cards: Iterable[Asset]) -> float:
    """Hours in service so far, summed over accelerators. [h]"""
    now = timezone.now()
    spent = sum(
        (
            (card.out_of_service_at or now) - card.in_service_at
            for card in cards
            if card.in_service_at is not None
        ),
        timedelta(),
    )
    return spent.total_seconds() / 3600


def _visible(user: User, *groups: list[Any]) -> set[Any]:
    """Those of the rows that `user` may open, as (model, pk)."""
    found = set()
    for rows in groups:
        if rows:
            model = type(rows[0])
            ids = model.objects.visible_to(user).filter(pk__in=[row.pk for row in rows])
            found |= {(model, pk) for pk in ids.values_list("pk", flat=True)}
    return found


def _links(rows: Iterable[Any], opens: set[Any]) -> list[Link]:
    return [Link(str(row), row) for row in rows if (type(row), row.pk) in opens]


def _need(request: CapacityRequest) -> Stage:
    stage = Stage("need", msg("Need"), links=[Link(request.reference, request)])
    if request.status in (RequestStatus.DRAFT, RequestStatus.CHANGES_REQUESTED):
        stage.state, stage.since = CURRENT, request.status_since
        stage.holders = [request.requester]
        stage.blocked_by = (
            msg("Changes were asked for")
            if request.status == RequestStatus.CHANGES_REQUESTED
            else msg("The draft was not submitted")
        )
    else:
        stage.state, stage.since = DONE, request.current.submitted_at
    stage.facts.append(msg("Needed by %(day)s", day=request.current.need_by.isoformat()))
    return stage


def _plan(request: CapacityRequest, plan: Any) -> Stage:
    stage = Stage("plan", msg("Study and plan"))
    if plan is not None:
        stage.state, stage.since = DONE, plan.chosen_at
        stage.facts.append(
            msg("%(n)s × %(what)s", n=plan.cards, what=accelerator_label(plan.accelerator_slug))
        )
    else:
        stage.since = request.status_since
        stage.holders = [request.requester, PROCUREMENT]
        stage.blocked_by = msg("No plan is chosen")
    return stage


def _approval(request: CapacityRequest) -> Stage:
    stage = Stage("approval", msg("Approval"))
    steps = list(request.current.steps.select_related("revision__request__team"))
    pending = [step for step in steps if step.status == StepStatus.PENDING]
    if steps and all(step.status == StepStatus.APPROVED for step in steps):
        stage.state = DONE
        stage.since = max((step.decided_at for step in steps if step.decided_at), default=None)
    elif request.status == RequestStatus.REJECTED:
        stage.state, stage.since = FAILED, request.status_since
        stage.blocked_by = msg("The request was rejected")
    elif pending:
        stage.since = min(step.opened_at or step.created_at for step in pending)
        stage.holders = [person for step in pending for person in deciders(step)]
        stage.blocked_by = plural(
            len(pending),
            msg("%(n)s decision is open", n=len(pending)),
            msg("%(n)s decisions are open", n=len(pending)),
        )
    return stage


def _quotes(request: CapacityRequest, rfqs: list[Rfq], opens: set[Any]) -> Stage:
    stage = Stage("quotes", msg("Quotes"), links=_links(rfqs, opens))
    live = [rfq for rfq in rfqs if rfq.status not in GONE_RFQ]
    if not live:
        stage.since, stage.holders = request.status_since, [PROCUREMENT]
        stage.blocked_by = msg("No RFQ was made yet")
        return stage
    rfq = live[-1]
    stage.holders, stage.since = [rfq.owner], rfq.status_since
    if rfq.status == RfqStatus.DRAFT:
        stage.blocked_by = msg("The RFQ is not published")
    elif rfq.status == RfqStatus.OPEN:
        stage.blocked_by = msg(
            "Vendors may answer until %(day)s", day=rfq.local_deadline.strftime("%Y-%m-%d %H:%M")
        )
    elif rfq.status == RfqStatus.CLOSED:
        stage.blocked_by = msg("The bids are not opened")
    else:
        stage.state, stage.since = DONE, rfq.opened_at
        stage.blocked_by = None
    return stage


def _award(rfqs: list[Rfq], opens: set[Any]) -> Stage:
    stage = Stage("award", msg("Award"))
    live = [rfq for rfq in rfqs if rfq.status not in GONE_RFQ]
    if not live:
        return stage
    rfq = live[-1]
    proposal = rfq.awards.filter(status=AwardStatus.PROPOSED).first()
    if rfq.status == RfqStatus.AWARDED:
        stage.state, stage.since = DONE, rfq.status_since
    elif proposal is not None:
        stage.since, stage.holders = proposal.created_at, [msg("Approver")]
        stage.blocked_by = msg("The award waits for a second person")
    elif rfq.status == RfqStatus.OPENED:
        stage.since, stage.holders = rfq.status_since, [rfq.owner]
        stage.blocked_by = msg("No award was proposed")
    stage.links = _links([rfq], opens)
    return stage


def _order(orders: list[PurchaseOrder], opens: set[Any]) -> Stage:
    stage = Stage("order", msg("Order"), links=_links(orders, opens))
    drafts = [order for order in orders if order.status == OrderStatus.DRAFT]
    if not orders:
        return stage
    if drafts:
        stage.since, stage.holders = drafts[0].created_at, [PROCUREMENT]
        stage.blocked_by = plural(
            len(drafts),
            msg("%(n)s order is not issued", n=len(drafts)),
            msg("%(n)s orders are not issued", n=len(drafts)),
        )
    else:
        stage.state = DONE
        stage.since = max(order.issued_at for order in orders if order.issued_at)
    for order in orders:
        if order.status != OrderStatus.DRAFT:
            stage.facts.append(
                msg("%(order)s to %(vendor)s: %(amount)s", order=str(order),
                    vendor=order.vendor.name,
                    amount=str(Money(order.gross_amount, order.currency)))
            )  # fmt: skip
    return stage


def _delivery(
    request: CapacityRequest,
    orders: list[PurchaseOrder],
    deliveries: list[Delivery],
    opens: set[Any],
) -> Stage:
    stage = Stage("delivery", msg("Delivery"), links=_links(deliveries, opens))
    if not orders or any(order.status == OrderStatus.DRAFT for order in orders):
        return stage
    posted = [row for row in deliveries if row.status == DeliveryStatus.POSTED]
    due = max(
        (day for order in orders if (day := order.promised_on or order.expected_on)), default=None
    )
    if _all_received(orders):
        stage.state = DONE
        stage.since = max((row.status_since for row in posted), default=None)
        return stage
    stage.since = max((o.issued_at for o in orders if o.issued_at), default=None)
    stage.holders = [*{order.vendor.name for order in orders}, OPERATIONS]
    stage.facts += risk_facts(request, orders)
    if due is None:
        stage.blocked_by = msg("Goods are on their way; no day is promised")
    elif due < today():
        stage.blocked_by = msg("The delivery is late: it was due on %(day)s", day=due.isoformat())
    else:
        stage.blocked_by = msg("The delivery is due on %(day)s", day=due.isoformat())
    return stage


def _all_received(orders: list[PurchaseOrder]) -> bool:
    rows = line_progress(*orders).values()
    return bool(rows) and all(row.received >= row.ordered or row.line.short_closed for row in rows)


def _burn_in(
    deliveries: list[Delivery], cards: list[Asset], accepted: int, plan: Any, opens: set[Any]
) -> Stage:
    stage = Stage("burn_in", msg("Burn-in"), links=_links(deliveries, opens))
    if not cards:
        return stage
    runs = list(
        BurnInRun.objects.filter(asset__in=cards, status__in=[BurnInStatus.RUNNING, BurnInStatus.INTERRUPTED])
        .select_related("operator")
    )  # fmt: skip
    waiting = [c for c in cards if c.status in (AssetStatus.RECEIVED, AssetStatus.INSTALLED)]
    defective = [c for c in cards if c.status in (AssetStatus.DEFECTIVE, AssetStatus.AT_VENDOR)]
    rmas = list(Rma.objects.filter(asset__in=cards, status__in=OPEN_RMA).select_related("vendor"))
    if not waiting and not defective:
        stage.state = DONE
        stage.since = max((card.status_since for card in cards), default=None)
        return stage
    if defective:
        stage.facts.append(
            plural(
                len(defective),
                msg("%(n)s card failed", n=len(defective)),
                msg("%(n)s cards failed", n=len(defective)),
            )
        )
        stage.facts += [
            msg("%(rma)s: %(state)s", rma=rma.number, state=str(rma.get_status_display()))
            for rma in rmas
        ]
    if runs:
        least = min(run.covered_share for run in runs)
        stage.since = min(run.started_at for run in runs)
        stage.holders = list({run.operator_id: run.operator for run in runs}.values())
        stage.blocked_by = msg(
            "%(n)s cards burn in; evidence covers %(share)s %% of the hours at least",
            n=len(runs),
            share=round(least * 100),
        )
    elif waiting:
        stage.since = min(card.status_since for card in waiting)
        stage.holders = [OPERATIONS]
        stage.blocked_by = plural(
            len(waiting),
            msg("%(n)s card waits for its burn-in", n=len(waiting)),
            msg("%(n)s cards wait for their burn-in", n=len(waiting)),
        )
    else:
        stage.since = min(card.status_since for card in defective)
        stage.holders = [*{rma.vendor.name for rma in rmas}, OPERATIONS]
        stage.blocked_by = plural(
            len(defective),
            msg("%(n)s failed card is not replaced yet", n=len(defective)),
            msg("%(n)s failed cards are not replaced yet", n=len(defective)),
        )
    return stage


def _acceptance(
    deliveries: list[Delivery], cards: list[Asset], accepted: int, plan: Any, opens: set[Any]
) -> Stage:
    stage = Stage("acceptance", msg("Acceptance"))
    rows = list(
        Acceptance.objects.filter(delivery__in=deliveries)
        .exclude(status=AcceptanceStatus.WITHDRAWN)
        .select_related("decided_by", "proposed_by")
        .order_by("pk")
    )
    stage.links = [Link(str(row), row) for row in rows if (Delivery, row.delivery_id) in opens]
    if plan is not None and accepted >= plan.cards:
        stage.state = DONE
        stage.since = max((row.decided_at for row in rows if row.decided_at), default=None)
        return stage
    proposals = [row for row in rows if row.status == AcceptanceStatus.PROPOSED]
    ready = [card for card in cards if card.status == AssetStatus.BURNED_IN]
    if accepted and plan is not None:
        stage.state = CURRENT  # in part: the rest is proven or replaced now
        stage.facts.append(msg("%(n)s of %(all)s accepted", n=accepted, all=plan.cards))
    if proposals:
        stage.since, stage.holders = proposals[0].created_at, [msg("Approver")]
        stage.blocked_by = msg("%(number)s waits for a signature", number=proposals[0].number)
    elif ready:
        stage.since, stage.holders = min(card.status_since for card in ready), [OPERATIONS]
        stage.blocked_by = msg(
            "%(n)s cards passed and are not proposed for acceptance", n=len(ready)
        )
    return stage


def _service(request: CapacityRequest, cards: list[Asset], accepted: int, plan: Any) -> Stage:
    stage = Stage("service", msg("Accepted GPU-hours"))
    serving = [card for card in cards if card.status == AssetStatus.IN_SERVICE]
    stage.facts.append(
        plural(
            len(serving),
            msg(
                "%(n)s card in service, %(hours)s GPU-hours so far",
                n=len(serving),
                hours=f"{service_hours(cards):,.1f}",
            ),
            msg(
                "%(n)s cards in service, %(hours)s GPU-hours so far",
                n=len(serving),
                hours=f"{service_hours(cards):,.1f}",
            ),
        )
    )
    if request.status == RequestStatus.FULFILLED:
        stage.state, stage.since = DONE, request.status_since
    elif plan is not None and accepted < plan.cards:
        stage.blocked_by = plural(
            plan.cards - accepted,
            msg("%(n)s card is not accepted yet", n=plan.cards - accepted),
            msg("%(n)s cards are not accepted yet", n=plan.cards - accepted),
        )
        stage.since = request.status_since
    return stage


def _settle(request: CapacityRequest, stages: list[Stage]) -> None:
    """Mark where it is: the first stage that is not done. A cancelled request stops where it was."""
    if request.status == RequestStatus.CANCELLED:
        for stage in stages:
            if stage.state != DONE:
                stage.state, stage.since = FAILED, request.status_since
                stage.blocked_by, stage.holders = msg("The request was cancelled"), []
                break
        return
    first = next((stage for stage in stages if stage.state != DONE), None)
    if first is not None and first.state == TODO:
        first.state = CURRENT
