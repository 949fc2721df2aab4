"""Who may do what in procurement. Roles and states are in procurement/states.py; separation of duties is here.

A refusal for lack of a role or because the same person already had another part in it is `NotPermitted`; a refusal
because of the state is `InvalidTransition`. Pages hide a step with `can`, services enforce it with `require_action`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import singledispatch
from typing import Any

from django.db.models import QuerySet

from core.errors import InvalidTransition, NotPermitted
from core.machines import actors_for
from core.messages import Message, msg
from core.models import Team, User
from core.policies import can_agree_as_second
from core.roles import Role, has_role, team_ids
from procurement.models import (
    Acceptance,
    Asset,
    Award,
    BurnInRun,
    Delivery,
    Invoice,
    OrderRevision,
    PurchaseOrder,
    PurchasingPolicy,
    Quote,
    Rfq,
    Rma,
    Substitution,
    Vendor,
)
from procurement.models.base import buying_teams, sees_everything
from procurement.models.invoices import InvoiceQuerySet
from procurement.states import Actor

ROLE_OF = {
    Actor.BUYER: Role.PROCUREMENT,
    Actor.APPROVER: Role.APPROVER,
    Actor.OPERATIONS: Role.OPERATIONS,
    Actor.FINANCE: Role.FINANCE,
}
PRICE_READERS = (Role.PROCUREMENT, Role.APPROVER, Role.FINANCE, Role.AUDITOR)


# --- in which capacity ---------------------------------------------------------------------------------------------


@singledispatch
def teams_of(obj: Any) -> frozenset[int]:
    """Ids of the teams that `obj` concerns; a role must be held in each of them, or for the whole organisation."""
    raise TypeError(f"{type(obj).__name__} has no teams")


@teams_of.register
def _(obj: Vendor) -> frozenset[int]:
    return frozenset()


@teams_of.register
def _(obj: Rfq) -> frozenset[int]:
    return frozenset(obj.lines.values_list("request__team", flat=True))


@teams_of.register
def _(obj: Quote) -> frozenset[int]:
    return teams_of(obj.rfq)


@teams_of.register
def _(obj: Award) -> frozenset[int]:
    return teams_of(obj.rfq)


@teams_of.register
def _(obj: PurchaseOrder) -> frozenset[int]:
    teams = obj.lines.exclude(request=None).values_list("request__team", flat=True)
    return frozenset(team for team in teams if team is not None)


@teams_of.register
def _(obj: OrderRevision) -> frozenset[int]:
    return teams_of(obj.order)


@teams_of.register
def _(obj: Substitution) -> frozenset[int]:
    return teams_of(obj.order_line.order)


@teams_of.register
def _(obj: Delivery) -> frozenset[int]:
    return teams_of(obj.order)


@teams_of.register
def _(obj: Asset) -> frozenset[int]:
    return frozenset() if obj.request is None else frozenset({obj.request.team_id})


@teams_of.register
def _(obj: BurnInRun) -> frozenset[int]:
    return teams_of(obj.asset)


@teams_of.register
def _(obj: Acceptance) -> frozenset[int]:
    return teams_of(obj.delivery)


@teams_of.register
def _(obj: Invoice) -> frozenset[int]:
    return teams_of(obj.order)


@teams_of.register
def _(obj: Rma) -> frozenset[int]:
    return teams_of(obj.asset)


def holds(user: User, actor: Actor, teams: Iterable[int]) -> bool:
    """Whether `user` acts as `actor` for all of `teams`."""
    role = ROLE_OF.get(actor)
    if role is None:
        return False
    teams = list(teams)
    return has_role(user, role) or (
        bool(teams) and all(has_role(user, role, team=team) for team in teams)
    )


# Where the teams of a row are found, for many rows in one query.
TEAM_PATHS: dict[type[Any], str] = {
    Rfq: "lines__request__team",
    Award: "rfq__lines__request__team",
    PurchaseOrder: "lines__request__team",
    OrderRevision: "order__lines__request__team",
    Delivery: "order__lines__request__team",
    Invoice: "order__lines__request__team",
    Acceptance: "delivery__order__lines__request__team",
    Rma: "asset__request__team",
    Substitution: "order_line__order__lines__request__team",
}


def with_teams(rows: QuerySet[Any], most: int) -> list[Any]:
    """The first rows, each knowing its teams: a list asks once, not once a row."""
    found = list(rows[:most])
    teams: dict[int, set[int]] = {row.pk: set() for row in found}
    path = TEAM_PATHS[rows.model]
    for pk, team in rows.model.objects.filter(pk__in=teams).values_list("pk", path).order_by():
        if team is not None:
            teams[pk].add(team)
    for row in found:
        row.known_teams = frozenset(teams[row.pk])
    return found


def actors(user: User, obj: Any) -> frozenset[str]:
    """In which capacities `user` may act on `obj`."""
    known: frozenset[int] | None = getattr(obj, "known_teams", None)
    teams = teams_of(obj) if known is None else known
    return frozenset(actor for actor in ROLE_OF if holds(user, actor, teams))


# --- separation of duties ------------------------------------------------------------------------------------------

Separation = Callable[[User, Any], bool]


def _not(*paths: str) -> Separation:
    """The user is none of the people found at `paths` (dotted, ending in an id)."""

    def free(user: User, obj: Any) -> bool:
        for path in paths:
            value = obj
            for name in path.split("."):
                value = getattr(value, name)
            if value is not None and value == user.pk:
                return False
        return True

    return free


def _not_operator(user: User, acceptance: Acceptance) -> bool:
    if acceptance.proposed_by_id == user.pk:
        return False
    units = acceptance.units.all()
    if "units" not in getattr(acceptance, "_prefetched_objects_cache", {}):
        units = units.select_related("run")
    return all(unit.run.operator_id != user.pk for unit in units if unit.included and unit.run)


def _not_opened(user: User, rfq: Rfq) -> bool:
    return all(opening.person_id != user.pk for opening in rfq.openings.all())


def _not_receiver(user: User, invoice: Invoice) -> bool:
    return all(delivery.received_by_id != user.pk for delivery in invoice.order.deliveries.all())


# Who chose the vendor: neither proposes or decides an award and then receives what was bought by it.
BOUGHT = ("award.proposed_by_id", "award.decided_by_id")
NOT_RECEIVED = msg("The one who awarded or issued an order does not receive its goods.")

# (model, action) → (who is free to do it, what to say otherwise)
SEPARATION: dict[tuple[type[Any], str], tuple[Separation, Message]] = {
    (Vendor, "unblock"): (_not("blocked_by_id"), msg("The one who blocked a vendor does not unblock it.")),
    (Rfq, "open_bids"): (_not_opened, msg("You have done your part; another person must open too")),
    (Quote, "disqualify"): (_not("rfq.owner_id"), msg("The owner of the RFQ does not disqualify quotes.")),
    (Award, "approve_award"): (
        _not("rfq.owner_id", "proposed_by_id"),
        msg("The owner of the RFQ and the one who proposed do not decide on the award."),
    ),
    (Award, "reject_award"): (
        _not("rfq.owner_id", "proposed_by_id"),
        msg("The owner of the RFQ and the one who proposed do not decide on the award."),
    ),
    (PurchaseOrder, "agree_over"): (
        _not("award.rfq.owner_id", "award.proposed_by_id"),
        msg("The owner of the RFQ and the one who proposed do not decide on the award."),
    ),
    (PurchaseOrder, "receive"): (_not("issued_by_id", *BOUGHT), NOT_RECEIVED),
    (PurchaseOrder, "draw_down"): (
        _not("issued_by_id", *BOUGHT), NOT_RECEIVED,
    ),
    (Substitution, "consent"): (
        _not("created_by_id", "order_line.order.issued_by_id"),
        msg("The one who proposed a substitution or issued the order does not decide on it."),
    ),
    (Substitution, "refuse"): (
        _not("created_by_id", "order_line.order.issued_by_id"),
        msg("The one who proposed a substitution or issued the order does not decide on it."),
    ),
    (Delivery, "post"): (_not("order.issued_by_id", *(f"order.{path}" for path in BOUGHT)), NOT_RECEIVED),
    (Delivery, "turn_away"): (
        _not("order.issued_by_id", *(f"order.{path}" for path in BOUGHT)), NOT_RECEIVED,
    ),
    (Delivery, "reverse"): (_not("received_by_id"), msg("The one who received a delivery does not reverse it.")),
    (OrderRevision, "approve_amendment"): (
        _not("proposed_by_id", "order.issued_by_id"),
        msg("The one who proposed an amendment or issued the order does not decide on it."),
    ),
    (OrderRevision, "reject_amendment"): (
        _not("proposed_by_id", "order.issued_by_id"),
        msg("The one who proposed an amendment or issued the order does not decide on it."),
    ),
    (BurnInRun, "waive_item"): (_not("operator_id"), msg("The operator of a burn-in waives nothing in it.")),
    (Acceptance, "sign_acceptance"): (
        _not_operator, msg("Neither the one who proposed nor an operator of the burn-in signs the acceptance."),
    ),
    (Acceptance, "refuse_acceptance"): (
        _not_operator, msg("Neither the one who proposed nor an operator of the burn-in signs the acceptance."),
    ),
    (Invoice, "match_invoice"): (_not_receiver, msg("The one who received the goods does not match their invoice.")),
    (Invoice, "override_invoice"): (_not("matched_by_id"), msg("The one who matched an invoice does not override it.")),
    (Invoice, "approve_invoice"): (
        _not("matched_by_id"), msg("The one who matched an invoice does not approve it for payment."),
    ),
}  # fmt: skip


def _separated(user: User, action: str, obj: Any) -> Message | None:
    """What to say when `user` had another part in `obj`; None when there is none."""
    found = SEPARATION.get((type(obj), action))
    if found is None or found[0](user, obj):
        return None
    return found[1]


# --- the two questions ---------------------------------------------------------------------------------------------


def can(user: User, action: str, obj: Any) -> bool:
    """Whether `user` may do `action` on `obj` as it stands."""
    allowed = actors_for(obj.RULES, action, obj.status)
    if not allowed or not allowed & actors(user, obj):
        return False
    if action == "cancel" and isinstance(obj, PurchaseOrder) and obj.issued_by_id == user.pk:
        return False
    return _separated(user, action, obj) is None


def require_action(user: User | None, action: str, obj: Any) -> None:
    """Raise NotPermitted or InvalidTransition unless `user` (None: the system) may do `action` now."""
    held = frozenset({str(Actor.SYSTEM)}) if user is None else actors(user, obj)
    now = actors_for(obj.RULES, action, obj.status)
    ever = {actor for rule in obj.RULES if rule.action == action for actor in rule.actors}
    if not now & held:
        if now or not ever & held:
            raise NotPermitted(on=obj)
        raise InvalidTransition(
            msg(
                "%(object)s is in state %(state)s; this step is not possible now",
                object=str(obj),
                state=str(obj.status),
            )
        )
    if user is None:
        return
    if action == "cancel" and isinstance(obj, PurchaseOrder) and obj.issued_by_id == user.pk:
        raise NotPermitted(msg("The one who issued an order does not cancel it."), on=obj)
    reason = _separated(user, action, obj)
    if reason is not None:
        raise NotPermitted(reason, on=obj)


# --- rights that are not a step ------------------------------------------------------------------------------------


def can_keep_vendors(user: User) -> bool:
    """Add vendors to the register."""
    return has_role(user, Role.PROCUREMENT)


def can_keep_clauses(user: User) -> bool:
    """Add clauses to the library, and new versions of them."""
    return has_role(user, Role.PROCUREMENT)


def can_read_clauses(user: User) -> bool:
    """Everyone who takes part in buying, in a team or for the whole organisation."""
    return sees_everything(user) or bool(buying_teams(user))


def can_create_rfq(user: User, teams: Iterable[int]) -> bool:
    """Ask vendors on behalf of all of `teams`."""
    return holds(user, Actor.BUYER, teams)


def can_set_policy(user: User) -> bool:
    """Administrators say how strictly the organisation buys; they decide nothing by it."""
    return has_role(user, Role.ADMINISTRATOR)


def can_confirm_policy(user: User, policy: PurchasingPolicy) -> bool:
    """A second administrator, not the one who proposed."""
    return can_agree_as_second(user, policy.proposed_by_id)


def reads_prices(user: User, teams: Iterable[int]) -> bool:
    """Whether the person's part in buying for `teams` includes prices at all."""
    teams = list(teams)
    return any(
        has_role(user, role) or (bool(teams) and all(has_role(user, role, team=t) for t in teams))
        for role in PRICE_READERS
    )


def can_read_prices(user: User, rfq: Rfq) -> bool:
    """Whether `user` may read the prices of quotes on `rfq`: nobody may while it is sealed and unopened."""
    if rfq.prices_hidden:
        return False
    return reads_prices(user, ()) or reads_prices(user, teams_of(rfq))


def can_read_order_prices(user: User, order: PurchaseOrder) -> bool:
    """Prices of an order: those who take part in buying, not those who only receive."""
    return reads_prices(user, ()) or reads_prices(user, teams_of(order))


def readable_invoices(user: User) -> InvoiceQuerySet:
    """Invoices of orders whose prices `user` may read: by a role in all teams of the order, not in one of them."""
    rows = Invoice.objects.visible_to(user)
    if reads_prices(user, ()):
        return rows
    teams = team_ids(user, *PRICE_READERS)
    foreign = Invoice.objects.filter(
        order__lines__request__team__in=Team.objects.exclude(pk__in=teams)
    )
    own = Invoice.objects.filter(order__lines__request__team__in=teams)
    return rows.filter(pk__in=own.values("pk")).exclude(pk__in=foreign.values("pk"))
