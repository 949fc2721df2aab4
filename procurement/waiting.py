"""What waits for a person in buying and proving, from an approved request to a paid invoice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, Max, OuterRef, Prefetch, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.machines import actors_for
from core.models import User
from core.roles import Role, has_role_anywhere
from planning.waiting import Waiting
from procurement.forms.rfqs import sourceable
from procurement.models import (
    Acceptance,
    AcceptanceUnit,
    Asset,
    Award,
    Delivery,
    Invoice,
    OrderRevision,
    PurchaseOrder,
    Rfq,
    Rma,
    Substitution,
)
from procurement.models.quotes import LineKind
from procurement.policies import ROLE_OF, can, with_teams
from procurement.selectors.progress import line_progress
from procurement.states import AcceptanceStatus, AssetStatus, DeliveryStatus, OrderStatus

MOST = 50  # of each kind
# Rows in a state, the step that takes them out of it, what it is called, whether it is a decision.
QUEUES: tuple[tuple[Any, str, str, str | Promise, bool], ...] = (
    (Award, "proposed", "approve_award", gettext_lazy("Award to decide"), True),
    (Acceptance, "proposed", "sign_acceptance", gettext_lazy("Acceptance to sign"), True),
    (Invoice, "matched", "approve_invoice", gettext_lazy("Invoice to approve"), True),
    (Substitution, "proposed", "consent", gettext_lazy("Substitution to decide"), True),
    (PurchaseOrder, "draft", "issue", gettext_lazy("Order to issue"), False),
    (Rfq, "draft", "publish", gettext_lazy("RFQ to publish"), False),
    (Rfq, "closed", "open_bids", gettext_lazy("Bids to open"), False),
    (Rfq, "opened", "propose_award", gettext_lazy("Quotes to compare"), False),
    (Delivery, "expected", "post", gettext_lazy("Delivery to receive"), False),
    (Rma, "draft", "file_rma", gettext_lazy("Return to file"), False),
    (Invoice, "captured", "match_invoice", gettext_lazy("Invoice to match"), False),
    (Invoice, "exception", "override_invoice", gettext_lazy("Invoice that does not match"), False),
    (Invoice, "approved", "pay_invoice", gettext_lazy("Payment to note"), False),
)  # fmt: skip
# What the rules and names of a row look at.
NEEDED: dict[type[Any], tuple[str, ...]] = {
    Award: ("rfq",),
    Acceptance: ("delivery__order",),
    Invoice: ("order", "vendor"),
    PurchaseOrder: ("vendor", "award__rfq"),
    Delivery: ("order", "vendor"),
    Rma: ("asset",),
    Substitution: ("order_line__order",),
}
LISTED: dict[type[Any], tuple[Any, ...]] = {
    Acceptance: (Prefetch("units", AcceptanceUnit.objects.select_related("run")),),
    Invoice: ("order__deliveries",),
    Rfq: ("openings",),
}


def waiting_in_buying(user: User, decisions_only: bool) -> Iterable[Waiting]:
    """Every step that `user` may take now, each once; decisions alone where nothing else is asked for."""
    for model, status, action, label, decision in QUEUES:
        if (decisions_only and not decision) or not _takes_part(user, model, action, status):
            continue
        rows = model.objects.visible_to(user).filter(status=status).order_by("status_since")
        rows = rows.select_related(*NEEDED.get(model, ())).prefetch_related(*LISTED.get(model, ()))
        if model is Rfq and status == "opened":  # else it waits for whoever decides on the award
            rows = rows.exclude(awards__status="proposed")
        for row in with_teams(rows, MOST):
            if can(user, action, row):
                named = {"title": str(row.rfq)} if model is Award else {}
                yield _row(row, label, decision=decision, **named)
    if _takes_part(user, OrderRevision, "approve_amendment", "proposed"):
        yield from _amendments(user)
    if not decisions_only:
        if has_role_anywhere(user, Role.PROCUREMENT):
            yield from _to_source(user)
        if has_role_anywhere(user, Role.OPERATIONS):
            yield from _expected(user)
            yield from _to_prove(user)


def _takes_part(user: User, model: Any, action: str, status: str) -> bool:
    """Whether the user holds, anywhere, a role that takes the step."""
    return has_role_anywhere(user, *_roles(model, action, status))


def _roles(model: Any, action: str, status: str) -> list[Role]:
    actors = actors_for(model.RULES, action, status)
    return [role for actor, role in ROLE_OF.items() if actor in actors]


def _row(row: Any, label: str | Promise, *, decision: bool = False, **changes: Any) -> Waiting:
    facts: dict[str, Any] = {
        "title": str(row), "url": row.get_absolute_url(), "since": row.status_since, "state": row.status,
        "state_label": row.get_status_display(),
    }  # fmt: skip
    return Waiting(label=label, decision=decision, **(facts | changes))


def _amendments(user: User) -> Iterable[Waiting]:
    rows = OrderRevision.objects.filter(
        status="proposed", order__in=PurchaseOrder.objects.visible_to(user)
    ).select_related("order__vendor", "order__award__rfq")
    for row in with_teams(rows, MOST):
        if can(user, "approve_amendment", row):
            yield Waiting(
                title=str(row.order), url=row.order.get_absolute_url(),
                label=gettext_lazy("Amendment to decide"), since=row.proposed_at, decision=True,
                state=row.status, state_label=row.get_status_display(),
            )  # fmt: skip


def _to_source(user: User) -> Iterable[Waiting]:
    """Approved requests for which nobody has asked for quotes yet."""
    for row in sourceable(user).order_by("status_since")[:MOST]:
        yield _row(
            row, gettext_lazy("Approved: ask for quotes"), url=f"{reverse('rfq-create')}?request={row.pk}"
        )  # fmt: skip


def _expected(user: User) -> Iterable[Waiting]:
    """Orders of which something is still to come and nothing is announced."""
    announced = Delivery.objects.filter(order=OuterRef("pk"), status=DeliveryStatus.EXPECTED)
    orders = with_teams(
        PurchaseOrder.objects.visible_to(user)
        .filter(status__in=[OrderStatus.ISSUED, OrderStatus.ACKNOWLEDGED])
        .exclude(Exists(announced))
        .select_related("vendor")
        .order_by("issued_at"),
        MOST,
    )
    still = {
        row.line.order_id
        for row in line_progress(*orders).values()
        if row.open > 0 and not row.line.short_closed and row.line.kind != LineKind.CLOUD
    }
    for order in orders:
        if order.pk in still and can(user, "receive", order):
            day = order.promised_on or order.expected_on
            yield _row(
                order, gettext_lazy("Delivery expected"), since=order.issued_at or order.status_since,
                note=_("on %(day)s") % {"day": day.isoformat()} if day else "",
            )  # fmt: skip


def _to_prove(user: User) -> Iterable[Waiting]:
    """Deliveries with units that wait for a burn-in, or passed it and wait to be proposed."""
    posted = Delivery.objects.visible_to(user).filter(status=DeliveryStatus.POSTED)
    units = Asset.objects.filter(receipt_line__delivery=OuterRef("pk"))
    proposed = AcceptanceUnit.objects.filter(
        asset=OuterRef("pk"), included=True, acceptance__status=AcceptanceStatus.PROPOSED
    )
    ready = units.filter(status=AssetStatus.BURNED_IN).exclude(Exists(proposed))
    rows = (
        posted.select_related("order", "vendor")
        .annotate(
            waits=Exists(units.filter(status=AssetStatus.RECEIVED)),
            ready=Exists(ready),
            proven=Max("runs__ended_at"),
        )
        .filter(Q(waits=True) | Q(ready=True))
        .order_by("status_since")
    )
    for row in with_teams(rows, MOST):
        if row.waits and can(user, "start_burn_in", row):
            yield _row(
                row, gettext_lazy("Burn-in to start"), url=reverse("delivery-burn-in", args=[row.pk])
            )  # fmt: skip
        if row.ready and can(user, "propose_acceptance", row):
            yield _row(
                row, gettext_lazy("Acceptance to propose"), since=row.proven or timezone.now(),
                url=reverse("acceptance-propose", args=[row.pk]),
            )  # fmt: skip


# The step that comes next, by model and state, where a second person takes it.
NEXT: dict[tuple[type[Any], str], tuple[str, str | Promise]] = {
    (Award, "proposed"): ("approve_award", gettext_lazy("Decides on the award")),
    (Acceptance, "proposed"): ("sign_acceptance", gettext_lazy("Signs the acceptance")),
    (Invoice, "captured"): ("match_invoice", gettext_lazy("Matches the invoice")),
    (Invoice, "exception"): ("override_invoice", gettext_lazy("May override the differences")),
    (Invoice, "matched"): ("approve_invoice", gettext_lazy("Approves it for payment")),
    (Invoice, "approved"): ("pay_invoice", gettext_lazy("Notes the payment")),
}


def next_people(obj: Any) -> tuple[str | Promise, str] | None:
    """What comes next for `obj` and who may do it, by name; None where nothing waits for a second person."""
    found = NEXT.get((type(obj), obj.status))
    if found is None:
        return None
    action, label = found
    roles = _roles(type(obj), action, obj.status)
    people = User.objects.filter(is_active=True, memberships__role__in=roles).distinct()
    names = [
        person.get_short_name()
        for person in people.order_by("pk")[:MOST]
        if can(person, action, obj)
    ]
    return label, ", ".join(names) or _("Nobody yet: it takes another person with this role")
