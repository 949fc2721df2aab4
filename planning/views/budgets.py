"""Pages of budgets: list, ledger, allotments and transfers, the end of a quarter."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import InputError
from core.forms import refuse
from core.http import SignedInRequest
from core.models import Job
from core.organisation import organisation, quarter_at
from core.policies import require
from core.refused import say_errors
from planning import policies, tables
from planning.filters import BudgetFilter
from planning.forms.budgets import AllotForm, CloseForm, OpenBudgetForm, TransferForm
from planning.forms.requests import ReasonForm
from planning.models import Budget, BudgetChange, LedgerEntry
from planning.selectors.budgets import balance, balances, entries
from planning.selectors.review_work import decided_in
from planning.services import budget_changes, revaluation
from planning.services.budget_changes import REVERSIBLE
from planning.states import ChangeStatus
from planning.views.requests import seen_version

PAGE = 50


@require_safe
def budget_list(request: SignedInRequest) -> HttpResponse:
    """Budgets the reader may see, with their balances."""
    rows = Budget.objects.visible_to(request.user).select_related("team")
    found = BudgetFilter(request.GET, queryset=rows, request=request)
    page = Paginator(found.qs, PAGE).get_page(request.GET.get("page"))
    sums = balances(page.object_list)
    may_keep = policies.can_keep_budgets(request.user)
    context = {
        "filter": found,
        "page": page,
        "revaluation": _shown_run() if may_keep else None,
        "rows": [tables.budget_row(budget, sums[budget.pk]) for budget in page.object_list],
        "quarter": quarter_at(),
        "may_keep": may_keep,
        "may_try": policies.can_try_scenarios(request.user),
    }
    return render(request, "planning/budget_list.html", context)


def _shown_run() -> Job | None:
    """The re-valuation that goes on, or what came of the last one within a day."""
    job = revaluation.newest_run()
    if job is None or job.is_open or timezone.now() - job.created_at < timedelta(days=1):
        return job
    return None


def _visible(request: SignedInRequest, pk: int) -> Budget:
    return get_object_or_404(Budget.objects.visible_to(request.user).select_related("team"), pk=pk)


@require_safe
def budget_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One budget: sums, ledger, proposed changes."""
    return render(request, "planning/budget_detail.html", _detail(request, _visible(request, pk)))


def _detail(request: SignedInRequest, budget: Budget) -> dict[str, Any]:
    user = request.user
    found = balance(budget)
    may_keep = policies.can_keep_budgets(user)
    proposed = BudgetChange.objects.filter(budget=budget, status=ChangeStatus.PROPOSED)
    period = budget.period(organisation().fiscal_start_month)
    return {
        "budget": budget,
        "balance": found,
        "tiles": tables.balance_tiles(found),
        "bar": tables.balance_parts(found),
        "period": period,
        "last_day": period.end - timedelta(days=1),
        "page": Paginator(entries(budget), PAGE).get_page(request.GET.get("page")),
        "reversible": REVERSIBLE if may_keep else frozenset(),
        "changes": [
            (
                change,
                policies.can_confirm_change(user, change.proposed_by_id),
                decided_in(getattr(change, "review_action", None), user),
            )
            for change in proposed.select_related(
                "proposed_by", "giver__team", "review_action__review"
            )
        ],
        "may_keep": may_keep and budget.closed_at is None,
        "allot_form": AllotForm(),
        "transfer_form": TransferForm(giver=budget, choices=Budget.objects.visible_to(user)),
        "close_form": CloseForm(),
        "trail": trail(budget)[:30],
    }


def budget_open(request: SignedInRequest) -> HttpResponse:
    """A new budget row (finance)."""
    require(policies.can_keep_budgets(request.user))
    form = OpenBudgetForm(
        request.POST or None,
        initial={"quarter": str(quarter_at()), "currency": organisation().currency},
    )
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            budget = budget_changes.open_budget(
                team_id=data["team"].pk,
                quarter=data["quarter"],
                kind=data["kind"],
                currency=data["currency"],
                by=request.user,
            )
        except InputError as error:
            refuse(form, error)
        else:
            return redirect(budget)
    status = 422 if request.method == "POST" else 200
    return render(request, "planning/budget_form.html", {"form": form}, status=status)


@require_POST
def budgets_revalue(request: SignedInRequest) -> HttpResponse:
    """Value what is bound in other currencies at today's rates, in the background (finance)."""
    revaluation.start(by=request.user)
    return redirect("budget-list")


@require_POST
def budget_allot(request: SignedInRequest, pk: int) -> HttpResponse:
    budget = _visible(request, pk)
    form = AllotForm(request.POST)
    if not form.is_valid():
        return _refused(request, budget, "allot_form", form)
    change = budget_changes.allot(budget_id=pk, by=request.user, **form.cleaned_data)
    return _posted(request, change)


@require_POST
def budget_transfer(request: SignedInRequest, pk: int) -> HttpResponse:
    budget = _visible(request, pk)
    form = TransferForm(request.POST, giver=budget, choices=Budget.objects.visible_to(request.user))
    if not form.is_valid():
        return _refused(request, budget, "transfer_form", form)
    data = form.cleaned_data
    change = budget_changes.transfer(
        giver_id=pk,
        receiver_id=data["receiver"].pk,
        amount=data["amount"],
        reason=data["reason"],
        by=request.user,
    )
    _posted(request, change)
    return redirect(budget)


def _posted(request: SignedInRequest, change: BudgetChange) -> HttpResponse:
    if change.status == ChangeStatus.POSTED:
        messages.success(request, _("It was posted."))
    else:
        messages.info(request, _("It is posted when a second person confirms it."))
    return redirect(change.budget)


def _refused(request: SignedInRequest, budget: Budget, name: str, form: Any) -> HttpResponse:
    say_errors(request, form)
    context = {**_detail(request, budget), name: form}
    return render(request, "planning/budget_detail.html", context, status=422)


@require_POST
def budget_close(request: SignedInRequest, pk: int) -> HttpResponse:
    budget = _visible(request, pk)
    form = CloseForm(request.POST)
    form.is_valid()
    budget_changes.close_budget(
        budget_id=pk, by=request.user, carry_unused=form.cleaned_data["carry_unused"]
    )
    messages.success(request, _("The quarter is closed."))
    return redirect(budget)


def _change(request: SignedInRequest, pk: int) -> BudgetChange:
    budgets = Budget.objects.visible_to(request.user).values("pk")
    return get_object_or_404(
        BudgetChange.objects.select_related("budget"), pk=pk, budget__in=budgets
    )


@require_POST
def change_confirm(request: SignedInRequest, pk: int) -> HttpResponse:
    change = _change(request, pk)
    budget_changes.confirm_change(change_id=pk, by=request.user, version=seen_version(request))
    messages.success(request, _("It was posted."))
    return redirect(change.budget)


@require_POST
def change_decline(request: SignedInRequest, pk: int) -> HttpResponse:
    change = _change(request, pk)
    form = ReasonForm(request.POST)
    if form.is_valid():
        budget_changes.decline_change(
            change_id=pk, by=request.user, reason=form.cleaned_data["reason"],
            version=seen_version(request),
        )  # fmt: skip
    else:
        messages.error(request, _("Give a reason."))
    return redirect(change.budget)


@require_POST
def entry_reverse(request: SignedInRequest, pk: int) -> HttpResponse:
    budgets = Budget.objects.visible_to(request.user).values("pk")
    entry = get_object_or_404(
        LedgerEntry.objects.select_related("budget"), pk=pk, budget__in=budgets
    )
    form = ReasonForm(request.POST)
    if form.is_valid():
        budget_changes.reverse(entry_id=pk, by=request.user, reason=form.cleaned_data["reason"])
        messages.success(request, _("It was reversed by a mirror entry."))
    else:
        messages.error(request, _("Give a reason."))
    return redirect(entry.budget)
