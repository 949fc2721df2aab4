"""Where the money goes: forecast to the year's end, what teams' cards cost, what if."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from core.charts import lines
from core.errors import InputError
from core.exports import Column, export_response
from core.forms import refuse
from core.http import SignedInRequest
from core.models import Team
from core.organisation import today
from core.policies import require
from core.refused import say_refusal
from planning import policies
from planning.forms.forecast import ForecastForm, MonthForm, ScenarioForm
from planning.models.requests import visible_teams
from planning.selectors.forecast import course, forecast
from planning.selectors.showback import ShowbackRow, showback
from planning.services import scenarios


@require_safe
def budget_forecast(request: SignedInRequest) -> HttpResponse:
    """To the end of the fiscal year, as a chart and in figures."""
    seen = visible_teams(request.user)
    teams = Team.objects.all() if seen is None else Team.objects.filter(pk__in=seen)
    form = ForecastForm(request.GET, teams=teams)
    chosen = form.cleaned_data if form.is_valid() else {}
    team = chosen.get("team")
    found = forecast(request.user, year=chosen.get("year"), team=team.pk if team else None)
    names = {"spent": _("Spent"), "forecast": _("Forecast")}
    points: list[Any] = [
        (f"{day:%Y-%m}", names[series], float(y), None if low is None else float(low),
         None if high is None else float(high))
        for day, series, y, low, high in course(found, today())
    ]  # fmt: skip
    chart = lines(
        title=_("Fiscal year %(year)s") % {"year": found.year},
        description=_(
            "The band runs from nothing more approved to all that is asked for approved."
        ),
        labels=(_("Month"), _("What"), f"{_('Amount')} [{found.currency}]"),
        rows=points,
        band_labels=(_("Nothing more"), _("All asked for")),
        limit=float(found.total("allotted")) or None,
        limit_label=_("Allotted"),
    )
    context = {"form": form, "year": found, "chart": chart,
               "may_try": policies.can_try_scenarios(request.user), "totals": {
        name: found.total(name)
        for name in ("allotted", "actual", "bound", "weighed", "low", "expected", "high", "left")
    }}  # fmt: skip
    return render(request, "planning/forecast.html", context)


SHOWBACK: tuple[Column[ShowbackRow], ...] = (
    Column("month", lambda row: f"{row.month:%Y-%m}"),
    Column("team", lambda row: row.allocation.team.slug),
    Column("cost_center", lambda row: row.allocation.team.cost_center),
    Column("request", lambda row: row.allocation.request.reference),
    Column("title", lambda row: row.allocation.request.title),
    Column("accelerator", lambda row: row.allocation.pool.accelerator_slug),
    Column("card_days", lambda row: row.card_days),
    Column(
        "utilisation", lambda row: None if row.utilisation is None else round(row.utilisation, 4)
    ),
    Column("cost", lambda row: row.cost.amount if row.cost else None),
    Column("of_which_idle", lambda row: row.idle_cost.amount if row.idle_cost else None),
    Column("currency", lambda row: row.cost.currency if row.cost else None),
)


def _month(request: SignedInRequest) -> date:
    form = MonthForm(request.GET)
    return (form.cleaned_data["month"] if form.is_valid() else None) or today()


@require_safe
def team_costs(request: SignedInRequest) -> HttpResponse:
    """What each team's cards cost in a month."""
    month = _month(request).replace(day=1)
    rows = showback(request.user, month)
    context = {"rows": rows, "month": month, "form": MonthForm({"month": f"{month:%Y-%m}"})}
    return render(request, "planning/showback.html", context)


@require_safe
def team_costs_export(request: SignedInRequest, kind: str) -> HttpResponseBase:
    """The same for the ledger system."""
    month = _month(request).replace(day=1)
    return export_response(
        kind, name=f"showback-{month:%Y-%m}", columns=SHOWBACK, rows=showback(request.user, month)
    )


@require_safe
def ledger_what_if(request: SignedInRequest) -> HttpResponse:
    """Try a change and see every line move; nothing is written."""
    require(policies.can_try_scenarios(request.user))
    form = ScenarioForm(request.GET or None)
    context: dict[str, Any] = {"form": form, "query": request.GET.urlencode()}
    status = 200
    if request.GET and form.is_valid():
        try:
            context["outcome"] = scenarios.what_if(form.change(), by=request.user)
        except InputError as error:
            refuse(form, error)
    if form.errors:
        status = 422
    context["may_propose"] = policies.can_keep_budgets(request.user)
    return render(request, "planning/ledger_what_if.html", context, status=status)


@require_POST
def ledger_propose(request: SignedInRequest) -> HttpResponse:
    """Turn it into changes of the budgets."""
    form = ScenarioForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("This change cannot be read. Try it again."))
        return redirect("ledger-what-if")
    try:
        made = scenarios.propose(
            form.change(), reason=request.POST.get("reason", ""), by=request.user
        )
    except InputError as error:
        say_refusal(request, error)
        return redirect("ledger-what-if")
    n = len(made)
    messages.success(
        request,
        ngettext(
            "%(n)s change of budgets was proposed.", "%(n)s changes of budgets were proposed.", n
        )
        % {"n": n},
    )
    return redirect(made[0].budget)
