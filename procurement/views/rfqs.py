"""RFQs: list, make, change, one RFQ, its comparison and award."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Prefetch, Q
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import DomainError, InputError
from core.files import download_made
from core.forms import refuse
from core.http import SignedInRequest
from core.refused import say_refusal
from core.roles import Role, has_role_anywhere
from core.whole import whole, wholes
from planning.selectors.review_work import decided_in
from procurement import policies
from procurement.award_documents import award_letters
from procurement.forms.requirements import RequirementForms, initial_rows, rows_of
from procurement.forms.rfqs import AwardForm, RfqForm, SplitForm
from procurement.models import Award, PurchasingPolicy, Rfq, VendorToken
from procurement.selectors.award_facts import award_facts
from procurement.selectors.clauses import clause_rows, newest_documents
from procurement.selectors.comparable import comparables
from procurement.selectors.comparison import COMPARED, Comparison, compare
from procurement.selectors.compliances import compliances
from procurement.selectors.delivery_risk import quote_risks
from procurement.selectors.letters import sendings
from procurement.selectors.levers import Lever, levers, rounds
from procurement.selectors.requirements import criteria_met_by
from procurement.selectors.sensitivity import ranking_sensitivity
from procurement.selectors.vendor_scores import vendor_scores
from procurement.selectors.warranty_terms import warranty_rows
from procurement.selectors.whole_cost import distinct, lowest, whole_costs
from procurement.services import awards, rfqs, vendor_access
from procurement.states import AwardStatus, QuoteStatus, RfqStatus
from procurement.views.common import PAGE, ask_over, buttons, version_of, visible
from procurement.waiting import next_people


@require_safe
def rfq_list(request: SignedInRequest) -> HttpResponse:
    rows = (
        Rfq.objects.visible_to(request.user)
        .select_related("owner")
        .annotate(
            received=Count(
                "quotes", filter=Q(quotes__status__in=COMPARED), distinct=True
            ),
            invited=Count("invitations", distinct=True),
        )
    )  # fmt: skip
    rows = rows.order_by("-id")
    state = request.GET.get("state", "")
    if state in RfqStatus.values:
        rows = rows.filter(status=state)
    context = {
        "page": Paginator(rows, PAGE).get_page(request.GET.get("page")),
        "state": state,
        "states": RfqStatus.choices,
        "may_create": has_role_anywhere(request.user, Role.PROCUREMENT),
    }
    return render(request, "procurement/rfq_list.html", context)


def rfq_create(request: SignedInRequest) -> HttpResponse:
    """From approved requests; `?request=` preselects one."""
    if not has_role_anywhere(request.user, Role.PROCUREMENT):
        raise Http404
    asked = wholes(request.GET.getlist("request"))
    form = RfqForm(request.POST or None, user=request.user, asked=asked)
    if request.method == "POST" and form.is_valid():
        try:
            rfq = rfqs.create_rfq(by=request.user, **form.service_arguments())
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(request, _("The RFQ is drafted. Publish it when it is complete."))
            return redirect(rfq)
    return _form(request, form)


def rfq_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    rfq = visible(request.user, "rfq", pk)
    policies.require_action(request.user, "edit", rfq)
    form = RfqForm(request.POST or None, user=request.user, rfq=rfq)
    if request.method == "POST" and form.is_valid():
        try:
            rfqs.update_rfq(
                rfq_id=pk, by=request.user, version=version_of(request), **form.service_arguments()
            )
        except InputError as error:
            refuse(form, error)
        else:
            return redirect(rfq)
    return _form(request, form, rfq)


def _form(request: SignedInRequest, form: RfqForm, rfq: Rfq | None = None) -> HttpResponse:
    return render(
        request,
        "procurement/rfq_form.html",
        {"form": form, "rfq": rfq, "may_add_vendor": policies.can_keep_vendors(request.user)},
        status=422 if request.method == "POST" else 200,
    )


def rfq_requirements(request: SignedInRequest, pk: int) -> HttpResponse:
    """What must be reached, row by row; `plans` in the form takes it from the approved plans again."""
    rfq = visible(request.user, "rfq", pk)
    policies.require_action(request.user, "edit", rfq)
    if request.method == "POST" and request.POST.get("plans"):
        rfqs.take_from_plans(rfq_id=pk, by=request.user, version=version_of(request))
        return redirect("rfq-requirements", pk=pk)
    forms = RequirementForms(request.POST or None, prefix="rows", initial=initial_rows(rfq))
    refused = ""
    if request.method == "POST" and forms.is_valid():
        try:
            rfqs.update_rfq(
                rfq_id=pk, by=request.user, version=version_of(request), requirements=rows_of(forms)
            )
        except InputError as error:
            refused = error.message.render(_)
        else:
            return redirect(rfq)
    return render(
        request,
        "procurement/rfq_requirements.html",
        {"rfq": rfq, "forms": forms, "refused": refused, "lines": rfq.lines.all()},
        status=422 if request.method == "POST" else 200,
    )


@require_safe
def rfq_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    return _detail(request, pk)


@require_POST
def vendor_key(request: SignedInRequest, pk: int) -> HttpResponse:
    """A vendor's key, shown once on the page that answers; or the one that stands is taken away."""
    visible(request.user, "rfq", pk)
    vendor = whole(request.POST.get("vendor", "")) or 0
    try:
        if request.POST.get("revoke"):
            vendor_access.revoke_token(rfq_id=pk, vendor_id=vendor, by=request.user)
            messages.success(request, _("The key is taken away."))
            return redirect("rfq-detail", pk=pk)
        key = vendor_access.issue_token(rfq_id=pk, vendor_id=vendor, by=request.user)
    except DomainError as error:
        if error.status == 403:
            raise
        say_refusal(request, error)
        return redirect("rfq-detail", pk=pk)
    response = _detail(request, pk, key=key, key_vendor=vendor)
    return response


def _detail(
    request: SignedInRequest, pk: int, key: str = "", key_vendor: int | None = None
) -> HttpResponse:
    rfq = visible(
        request.user, "rfq", pk, Rfq.objects.select_related("owner", "review_action__review")
    )
    may_read = policies.can_read_prices(request.user, rfq)
    quotes = list(
        rfq.quotes.exclude(status=QuoteStatus.SUPERSEDED)
        .select_related("vendor", "rfq")
        .prefetch_related("lines")
    )
    award = (
        rfq.awards.exclude(status=AwardStatus.WITHDRAWN)
        .select_related("proposed_by", "decided_by", "rfq")
        .first()
    )
    may_record = policies.can(request.user, "record_quote", rfq)
    facts = award_facts(award) if award is not None and may_read else None
    letters = {row.document.pk: row for row in sendings(award)} if award and may_read else {}
    award_steps = [
        row
        for row in (buttons(request.user, "award", award) if award and may_read else [])
        if row["step"].action != "send-letters" or any(one.can_go for one in letters.values())
    ]
    context: dict[str, Any] = {
        "rfq": rfq,
        "decided_in": decided_in(rfq.review_action, request.user),
        "lines": rfq.lines.select_related("request__team"),
        "criteria": rfq.criteria.all(),
        "requirements": rfq.requirements.all(),
        "clauses": clause_rows(rfq),
        "papers": newest_documents(rfq),
        "invitations": list(
            rfq.invitations.select_related("vendor").prefetch_related(
                Prefetch("tokens", VendorToken.objects.filter(revoked_at=None), to_attr="keys")
            )
        ),
        "may_let_in": policies.can(request.user, "let_in", rfq) and not rfq.is_due,
        "key": key,
        "key_vendor": key_vendor,
        "key_url": request.build_absolute_uri(reverse("api-vendor-rfq")) if key else "",
        "answered": {quote.vendor_id for quote in quotes},
        "quotes": [(quote, quote.totals() if may_read else None) for quote in quotes],
        "may_read": may_read,
        "may_quote": may_record and rfq.status == RfqStatus.OPEN and not rfq.is_due,
        "may_keep_late": may_record and (rfq.status != RfqStatus.OPEN or rfq.is_due),
        "may_edit": policies.can(request.user, "edit", rfq),
        "may_compare": may_read and bool(quotes),
        "award": award,
        "award_facts": facts,
        "award_next": next_people(award) if award and may_read else None,
        "award_steps": ask_over(
            award_steps, facts is not None and facts.is_beyond, "procurement/_award.html"
        ),
        "orders": rfq.awards.none() if award is None else award.orders.select_related("vendor"),
        "documents": [
            (document, text, letters.get(document.pk))
            for document, text in (award_letters(award) if award is not None and may_read else [])
        ],
        "rounds": rounds(rfq) if may_read else [],
        "statements": rfq.statements.select_related("person", "vendor"),
        "statements_needed": PurchasingPolicy.current().conflict_statements,
        "openings": rfq.openings.select_related("person"),
        "openers": PurchasingPolicy.current().openers if rfq.sealed else 1,
        # Sealed bids stay open until the deadline: closing is offered when it can be done.
        "steps": [
            row
            for row in buttons(request.user, "rfq", rfq)
            if row["step"].action != "close" or not rfq.sealed or rfq.is_due
        ],
        "trail": trail(rfq, *([award] if award else []))[:60],
    }
    return render(request, "procurement/rfq_detail.html", context)


@require_safe
def rfq_document(request: SignedInRequest, pk: int, document: int) -> HttpResponseBase:
    """The RFQ as its vendors get it."""
    rfq = visible(request.user, "rfq", pk)
    row = get_object_or_404(rfq.documents.select_related("file"), pk=document)
    return download_made(row.file)


@require_safe
def award_document(request: SignedInRequest, pk: int, document: int) -> HttpResponseBase:
    """The memo of an award, or a letter to a vendor that was not chosen."""
    award = visible(request.user, "award", pk, Award.objects.select_related("rfq"))
    if not policies.can_read_prices(request.user, award.rfq):
        raise Http404
    row = get_object_or_404(award.documents.select_related("file"), pk=document)
    return download_made(row.file)


def rfq_compare(request: SignedInRequest, pk: int) -> HttpResponse:
    """Quotes side by side; the award is proposed from here."""
    rfq = visible(request.user, "rfq", pk, Rfq.objects.select_related("owner"))
    if not policies.can_read_prices(request.user, rfq):
        raise Http404
    comparison = compare(rfq)
    normalised, wholes = comparables(comparison), whole_costs(comparison)
    checks = compliances(comparison)
    risks = quote_risks([row.quote for row in comparison.rows], rfq.lines.all())
    scores = vendor_scores([row.quote.vendor for row in comparison.rows], request.user)
    reached = criteria_met_by([row.quote for row in comparison.rows])
    may_award = policies.can(request.user, "propose_award", rfq) and not rfq.awards.filter(
        status=AwardStatus.PROPOSED
    )
    form = AwardForm(request.POST or None, rows=comparison.rows, rfq=rfq) if may_award else None
    if request.method == "POST":
        policies.require_action(request.user, "propose_award", rfq)
        if form is not None and form.is_valid():
            try:
                awards.propose_award(
                    rfq_id=pk,
                    by=request.user,
                    version=version_of(request),
                    **form.service_arguments(),
                )
            except InputError as error:
                refuse(form, error)
            else:
                messages.success(request, _("The award is proposed. A second person decides."))
                return redirect(rfq)
    cheapest_whole = lowest(comparison, wholes)
    context = {
        "rfq": rfq,
        "comparison": comparison,
        "sensitivity": ranking_sensitivity(comparison),
        "levers": _levers(comparison),
        "form": form,
        "old_rates": comparison.old_rates,
        "differences": [comparison.above(row) for row in comparison.rows],
        "comparables": [normalised[row.quote.pk] for row in comparison.rows],
        "wholes": [wholes[row.quote.pk] for row in comparison.rows],
        "lowest": cheapest_whole,
        "lowest_cost": cheapest_whole and wholes[cheapest_whole.quote.pk].total,
        # The same for most quotes: each is told once.
        "assumed": distinct(one for whole in wholes.values() for one in whole.assumptions),
        "checks": [checks[row.quote.pk] for row in comparison.rows],
        "risks": [risks[row.quote.pk] for row in comparison.rows],
        "criteria": [reached[row.quote.pk] for row in comparison.rows],
        "warranty_rows": warranty_rows([row.quote for row in comparison.rows]),
        "histories": [scores[row.quote.vendor_id] for row in comparison.rows],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "procurement/rfq_compare.html", context, status=status)


def _levers(comparison: Comparison) -> list[tuple[Any, list[Lever]]]:
    found = levers(comparison)
    return [(row, found[row.quote.pk]) for row in comparison.rows if found.get(row.quote.pk)]


def rfq_split(request: SignedInRequest, pk: int) -> HttpResponse:
    """An award of quantities to several vendors: `?quote=` names those that take part."""
    rfq = visible(request.user, "rfq", pk, Rfq.objects.select_related("owner"))
    if not policies.can_read_prices(request.user, rfq):
        raise Http404
    policies.require_action(request.user, "propose_award", rfq)
    standing = rfq.quotes.filter(status=QuoteStatus.SUBMITTED).select_related("vendor")
    chosen = list(
        standing.filter(pk__in=wholes(request.GET.getlist("quote"))).prefetch_related(
            "lines__rfq_line"
        )
    )
    form = SplitForm(request.POST or None, quotes=chosen, rfq=rfq)
    if request.method == "POST" and form.is_valid():
        try:
            awards.propose_award(
                rfq_id=pk, by=request.user, version=version_of(request), **form.service_arguments()
            )
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(request, _("The award is proposed. A second person decides."))
            return redirect(rfq)
    context = {
        "rfq": rfq,
        "lines": rfq.lines.all(),
        "standing": standing,
        "chosen": {quote.pk for quote in chosen},
        "form": form if chosen else None,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "procurement/rfq_split.html", context, status=status)
