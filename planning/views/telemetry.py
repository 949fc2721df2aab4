"""Pages of telemetry: what the fleet and each team did, and the sources that say so."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core import charts
from core.audit import trail
from core.errors import DomainError
from core.forms import refuse
from core.http import SignedInRequest
from core.models import Team
from core.once import repeatable
from core.organisation import organisation, quarter_at
from core.quarters import Quarter
from core.templatetags.ui import said
from planning import telemetry_policies as may
from planning import telemetry_tables
from planning.forms.telemetry import LoadForm, SourceForm
from planning.models.requests import visible_teams
from planning.models.telemetry import BillLine, SourceKind, TelemetrySource
from planning.selectors.telemetry import Fleet, fleet, teams_with_cards
from planning.services import bills
from planning.services import telemetry_sources as sources

PAGE = 30


@require_safe
def telemetry_fleet(request: SignedInRequest) -> HttpResponse:
    """The whole fleet for central roles; for others their teams' cards. ?team= and ?quarter= choose."""
    org = organisation()
    quarter = chosen_quarter(request)
    mine = visible_teams(request.user)
    named = request.GET.get("team", "")
    team = get_object_or_404(Team, slug=named) if named else None
    if team is not None and not may.can_see_fleet(request.user, team):
        raise Http404
    chosen = [team.pk] if team is not None else None if mine is None else sorted(mine)
    figures = fleet(first=quarter.start, last=quarter.end, organisation=org, teams=chosen)
    return render(
        request,
        "planning/telemetry_fleet.html",
        {
            "fleet": figures,
            "idle_owned": figures.idle_owned if figures.pools else None,
            "quarter": quarter,
            "earlier": quarter.previous(),
            "later": quarter.next() if quarter < quarter_at(org=org) else None,
            "team": team,
            "teams": teams_with_cards() if mine is None else teams_with_cards().filter(pk__in=mine),
            "chart": _course(figures),
            "useful_note": _("cloud bills, and purchases over %(years)s years; no power, no staff")
            % {"years": number_format(figures.service_years)}
            if figures.service_years
            else "",
            **telemetry_tables.shown(figures),
            "may_see_sources": may.can_see_sources(request.user),
        },
    )


def chosen_quarter(request: SignedInRequest) -> Quarter:
    """?quarter=2027Q1, else the running one; 404 for what is none."""
    org = organisation()
    try:
        return Quarter.parse(request.GET["quarter"], org.fiscal_start_month)
    except KeyError:
        return quarter_at(org=org)
    except ValueError as error:
        raise Http404 from error


def _course(figures: Fleet) -> charts.Chart | None:
    rows = [
        (day, name, share * 100, None, None)
        for day, utilization, memory in figures.days
        for name, share in ((_("Utilisation"), utilization), (_("Memory in use"), memory))
        if share is not None
    ]
    if not rows:
        return None
    return charts.lines(
        title=_("Utilisation and memory, day by day"),
        description=_("Means over the hours with samples; a day without samples is a gap."),
        labels=(_("Day"), _("Figure"), _("Share [%]")),
        rows=rows,
    )


def _source(request: SignedInRequest, pk: int) -> TelemetrySource:
    if not may.can_see_sources(request.user):
        raise Http404
    return get_object_or_404(TelemetrySource.objects.select_related("team"), pk=pk)


@require_safe
def source_list(request: SignedInRequest) -> HttpResponse:
    """Sources with their last load."""
    if not may.can_see_sources(request.user):
        raise Http404
    rows = TelemetrySource.objects.select_related("team")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    may_keep = may.can_keep_sources(request.user)
    return render(request, "planning/telemetry_sources.html", {"page": page, "may_keep": may_keep})


@require_http_methods(["GET", "HEAD", "POST"])
def source_create(request: SignedInRequest) -> HttpResponse:
    if not may.can_see_sources(request.user):
        raise Http404
    form = SourceForm(request.POST or None, initial={"time_zone": organisation().time_zone})
    return _saved(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
def source_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    source = _source(request, pk)
    return _saved(request, SourceForm(request.POST or None, instance=source), source)


def _saved(
    request: SignedInRequest, form: SourceForm, source: TelemetrySource | None
) -> HttpResponse:
    if request.method == "POST" and form.is_valid():
        fields = dict(form.cleaned_data)
        version = fields.pop("version", None)
        try:
            if source is None:
                source = sources.create_source(by=request.user, **fields)
            else:
                source = sources.update_source(
                    source_id=source.pk, by=request.user, seen_version=version, **fields
                )
        except DomainError as error:
            if error.status != 422:
                raise
            refuse(form, error)
        else:
            return redirect(source)
    status = 422 if request.method == "POST" else 200
    context = {"form": form, "source": source}
    return render(request, "planning/telemetry_source_form.html", context, status=status)


@require_safe
def source_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One source: how it is read, its loads, and what may be done."""
    return render(request, "planning/telemetry_source.html", _detail(request, _source(request, pk)))


def _detail(request: SignedInRequest, source: TelemetrySource, **more: Any) -> dict[str, Any]:
    loads = source.ingestions.select_related("file", "job", "by")
    page = Paginator(loads, PAGE).get_page(request.GET.get("page"))
    keeper = may.can_keep_sources(request.user) and source.active
    return {
        "source": source,
        "page": page,
        "loads": [(load, [said(problem) for problem in load.problems]) for load in page],
        "open_job": next((load.job for load in page if load.job and load.job.is_open), None),
        "may_keep": may.can_keep_sources(request.user),
        "may_load": keeper and source.kind != SourceKind.PUSH,
        "may_pull": keeper and source.kind == SourceKind.PROMETHEUS,
        "may_issue": keeper and source.kind == SourceKind.PUSH,
        "may_post": source.kind == SourceKind.BILL and may.can_post_bills(request.user),
        "lines": BillLine.objects.filter(source=source).count()
        if source.kind == SourceKind.BILL
        else None,
        "load_form": LoadForm(),
        "trail": trail(source)[:20],
        **more,
    }


@repeatable  # the same file of a source is loaded once, and may have hundreds of megabytes
@require_POST
def source_load(request: SignedInRequest, pk: int) -> HttpResponse:
    source = _source(request, pk)
    form = LoadForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            load, is_new = sources.receive_file(
                source_id=source.pk, upload=form.cleaned_data["file"], by=request.user
            )
        except DomainError as error:
            if error.status != 422:
                raise
            refuse(form, error)
        else:
            if is_new:
                messages.success(request, _("The file is kept and being read."))
            else:
                when = date_format(timezone.localtime(load.started_at), "DATETIME_FORMAT")
                text = _("This source was given the same file on %(when)s; nothing changes.")
                messages.info(request, text % {"when": when})
            return redirect(source)
    context = _detail(request, source, load_form=form)
    return render(request, "planning/telemetry_source.html", context, status=422)


@require_POST
def source_pull(request: SignedInRequest, pk: int) -> HttpResponse:
    source = _source(request, pk)
    sources.request_pull(source_id=source.pk, by=request.user)
    messages.success(request, _("The server is being asked."))
    return redirect(source)


@require_POST
def source_token(request: SignedInRequest, pk: int) -> HttpResponse:
    """A new push token, shown on this answer and never again."""
    source = _source(request, pk)
    token = sources.issue_token(source_id=source.pk, by=request.user)
    context = _detail(request, source, token=token)
    return render(request, "planning/telemetry_source.html", context)


@require_POST
def source_post_bill(request: SignedInRequest, pk: int) -> HttpResponse:
    source = _source(request, pk)
    posted, left = bills.post_bill(source_id=source.pk, by=request.user)
    text = ngettext("%(n)s entry was posted.", "%(n)s entries were posted.", posted) % {"n": posted}
    messages.success(request, text)
    for problem in left:
        messages.warning(request, said(problem))
    return redirect(source)
