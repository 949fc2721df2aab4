"""Purchase orders: list, one order, its amendments and document."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.audit import trail
from core.errors import InputError
from core.files import download
from core.http import SignedInRequest
from procurement import policies
from procurement.forms.orders import AmendForm
from procurement.models import Milestone, OrderRevision, PurchaseOrder, Substitution
from procurement.selectors.awarded import amendment_rows, order_old_rates, order_rows
from procurement.selectors.delivery_risk import order_risk
from procurement.selectors.draw_downs import commitments
from procurement.selectors.milestones import milestone_states
from procurement.selectors.precedence import order_differences
from procurement.selectors.progress import line_progress, receipt_state
from procurement.services import orders
from procurement.states import DeliveryStatus, OrderStatus, RevisionStatus
from procurement.views.common import PAGE, ask_over, buttons, version_of, visible


@require_safe
def order_list(request: SignedInRequest) -> HttpResponse:
    rows = PurchaseOrder.objects.visible_to(request.user).select_related("vendor", "issued_by")
    state = request.GET.get("state", "")
    if state in OrderStatus.values:
        rows = rows.filter(status=state)
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    progress = list(line_progress(*page.object_list).values())
    context = {
        "page": page,
        "rows": [
            (order, receipt_state(order, [p for p in progress if p.line.order_id == order.pk]))
            for order in page.object_list
        ],
        "state": state,
        "states": OrderStatus.choices,
        "may_read": policies.reads_prices(request.user, ()),
    }
    return render(request, "procurement/order_list.html", context)


@require_safe
def order_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    order = visible(
        request.user, "order", pk,
        PurchaseOrder.objects.select_related(
            "vendor", "quote__vendor", "quote__rfq", "quote__warranty", "issued_by", "document", "award__rfq", "site"
        ),
    )  # fmt: skip
    may_read = policies.can_read_order_prices(request.user, order)
    progress = list(line_progress(order).values())
    drawn = commitments(progress)
    revisions = list(order.revisions.select_related("proposed_by", "decided_by", "order"))
    proposed = next((r for r in revisions if r.status == RevisionStatus.PROPOSED), None)
    totals = order.totals([row.line for row in progress])
    against = order_rows(order) if may_read else []
    amended = amendment_rows(proposed) if proposed is not None and may_read else []
    differences = order_differences(order) if may_read else []
    context: dict[str, Any] = {
        "order": order,
        "risk": order_risk(order),
        "against": against,
        "old_rates": order_old_rates(order) if may_read else [],
        "amended": amended,
        "may_read": may_read,
        "lines": list(zip(progress, totals.lines, strict=True)),
        "totals": totals if may_read else None,
        "milestones": milestone_states(order, totals) if may_read else [],
        "proposed_terms": _other_terms(order, proposed),
        "receipt": receipt_state(order, progress),
        "revisions": revisions,
        "proposed": proposed,
        "amendment_steps": ask_over(
            buttons(request.user, "amendment", proposed) if proposed else [],
            any(row.is_beyond for row in amended),
        ),
        "deliveries": order.deliveries.select_related("vendor", "received_by"),
        "expected": order.deliveries.filter(status=DeliveryStatus.EXPECTED).select_related(
            "vendor"
        ),
        "invoices": order.invoices.all() if may_read else [],
        "may_amend": policies.can(request.user, "amend", order) and proposed is None,
        "may_announce": policies.can(request.user, "announce", order),
        "may_receive": policies.can(request.user, "receive", order),
        "may_invoice": policies.can(request.user, "capture_invoice", order),
        "commitments": drawn,
        "differences": differences,
        "substitutions": [
            (row, buttons(request.user, "substitution", row))
            for row in Substitution.objects.filter(order_line__order=order).select_related(
                "order_line__order", "created_by", "decided_by"
            )
        ],
        "steps": ask_over(
            [
                row
                for row in buttons(request.user, "order", order)
                if drawn or row["step"].action != "draw-down"
            ],
            any(row.is_beyond for row in against),
            issue_told_by="procurement/_issue_warning.html" if differences else "",
        ),
        "trail": trail(order, *revisions)[:60],
    }
    return render(request, "procurement/order_detail.html", context)


def _other_terms(order: PurchaseOrder, proposed: OrderRevision | None) -> list[Any] | None:
    """The payment terms of a proposed amendment; None where they stay as they are."""
    if proposed is None or proposed.payments == orders.terms_of(order):
        return None
    return [Milestone(position=number, **term) for number, term in enumerate(proposed.payments, 1)]


def order_amend(request: SignedInRequest, pk: int) -> HttpResponse:
    order = visible(request.user, "order", pk)
    policies.require_action(request.user, "amend", order)
    form = AmendForm(request.POST or None, order=order)
    if request.method == "POST" and form.is_valid():
        try:
            orders.propose_amendment(
                order_id=pk,
                by=request.user,
                version=version_of(request),
                **form.service_arguments(),
            )
        except InputError as error:
            form.refuse_input(error)
        else:
            messages.success(request, _("The amendment is proposed. A second person decides."))
            return redirect(order)
    return lines_page(request, order, form, _("Amend the order"), _("Propose the amendment"))


def lines_page(
    request: SignedInRequest, order: PurchaseOrder, form: Any, title: str, submit: str,
    version: Any = None,
) -> HttpResponse:  # fmt: skip
    context = {
        "order": order,
        "form": form,
        "title": title,
        "submit": submit,
        "version": order.version if version is None else version,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "procurement/order_lines_form.html", context, status=status)


@require_safe
def order_document(request: SignedInRequest, pk: int) -> HttpResponseBase:
    """The order as it was sent to the vendor."""
    order = visible(request.user, "order", pk, PurchaseOrder.objects.select_related("document"))
    if order.document is None or not policies.can_read_order_prices(request.user, order):
        raise Http404
    return download(order.document)
