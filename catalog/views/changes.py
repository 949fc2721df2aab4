"""Pages that change the catalogue: corrections, exchange rates, price files. Each calls the service the API calls."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from catalog import policies
from catalog.forms import (
    AcceleratorCorrectionForm,
    CorrectionForm,
    EncodingForm,
    LeaseForm,
    ModelCorrectionForm,
    PlatformCorrectionForm,
    PriceImportForm,
    RateForm,
    TcoCorrectionForm,
)
from catalog.labels import tco_label
from catalog.models import PriceImport
from catalog.services import prices
from catalog.services.leases import add_lease
from catalog.services.price_rows import ADD, COLUMNS, REFUSED, UNCHANGED
from catalog.services.rates import add_rate
from catalog.services.revisions import ACCELERATOR, ARCHITECTURE, PLATFORM, TCO, Subject, correct
from catalog.tables import HARDWARE, LEASES, OFFERS, RATES
from core.errors import InputError, StaleData
from core.exports import Column, export_response
from core.forms import refuse
from core.http import SignedInRequest
from core.imports import refused_first
from core.organisation import organisation, today
from core.policies import require
from core.whole import whole

ROWS_SHOWN = 500


def _correct(
    request: SignedInRequest,
    subject: Subject,
    form_class: type[CorrectionForm],
    key: dict[str, Any],
) -> HttpResponse:
    require(policies.can_correct(request.user))
    of = get_object_or_404(subject.model.objects.select_related("current"), **key)
    form = form_class(request.POST or None, spec=of.current, initial={"as_of": today()})
    if request.method == "POST" and form.is_valid():
        try:
            correct(subject, pk=of.pk, changes=form.changes(), by=request.user, **form.about())
        except (InputError, StaleData) as error:
            refuse(form, error)
        else:
            messages.success(
                request, _("The correction was added. The earlier figures stay in the history.")
            )
            return redirect(of)
    name = tco_label(of.key) if subject is TCO else str(of)
    crumbs = [(_("Catalogue"), reverse("catalog-home")), (name, of.get_absolute_url())]
    context = {"form": form, "of": of, "name": name, "crumbs": crumbs}
    status = 422 if request.method == "POST" else 200
    return render(request, "catalog/correct.html", context, status=status)


def accelerator_correct(request: SignedInRequest, slug: str) -> HttpResponse:
    return _correct(request, ACCELERATOR, AcceleratorCorrectionForm, {"slug": slug})


def model_correct(request: SignedInRequest, slug: str) -> HttpResponse:
    return _correct(request, ARCHITECTURE, ModelCorrectionForm, {"slug": slug})


def platform_correct(request: SignedInRequest, slug: str) -> HttpResponse:
    return _correct(request, PLATFORM, PlatformCorrectionForm, {"slug": slug})


def tco_correct(request: SignedInRequest, pk: int) -> HttpResponse:
    return _correct(request, TCO, TcoCorrectionForm, {"pk": pk})


def rate_add(request: SignedInRequest) -> HttpResponse:
    require(policies.can_add_rate(request.user))
    form = RateForm(request.POST or None, initial={"as_of": today()})
    if request.method == "POST" and form.is_valid():
        try:
            row = add_rate(by=request.user, **form.cleaned_data)
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(request, _("%(rate)s was added.") % {"rate": row})
            return redirect("rate-list")
    context = {"form": form, "crumbs": [(RATES.title, reverse("rate-list"))]}
    status = 422 if request.method == "POST" else 200
    return render(request, "catalog/rate_add.html", context, status=status)


def lease_add(request: SignedInRequest) -> HttpResponse:
    require(policies.can_import_prices(request.user))
    form = LeaseForm(
        request.POST or None, initial={"as_of": today(), "currency": organisation().currency}
    )
    if request.method == "POST" and form.is_valid():
        try:
            row = add_lease(by=request.user, **form.quotation())
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(request, _("%(lease)s was added.") % {"lease": row})
            return redirect("lease-list")
    context = {"form": form, "crumbs": [(LEASES.title, reverse("lease-list"))]}
    status = 422 if request.method == "POST" else 200
    return render(request, "catalog/lease_add.html", context, status=status)


# --- price files ----------------------------------------------------------------------------------------------------


def price_import(request: SignedInRequest) -> HttpResponse:
    """Upload a file; its preview follows."""
    require(policies.can_import_prices(request.user))
    form = PriceImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = prices.start_import(
                target=form.cleaned_data["target"],
                upload=form.cleaned_data["file"],
                by=request.user,
            )
        except InputError as error:
            refuse(form, error)
        else:
            return redirect(row)
    columns = [
        (target.label, target.value, *(", ".join(names) for names in COLUMNS[target]))
        for target in PriceImport.Target
    ]
    context = {
        "form": form,
        "columns": columns,
        "recent": PriceImport.objects.select_related("file", "created_by")[:10],
        "crumbs": [(OFFERS.title, reverse("offer-list"))],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "catalog/price_import.html", context, status=status)


@require_safe
def price_template(request: SignedInRequest, target: str) -> HttpResponseBase:
    """An empty file with the right columns."""
    if target not in PriceImport.Target.values:
        raise Http404
    names = COLUMNS[PriceImport.Target(target)][0]
    columns: list[Column[Any]] = [Column(name, lambda row: None) for name in names]
    return export_response("csv", name=f"{target}-template", columns=columns, rows=[])


@require_safe
def price_import_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    require(policies.can_import_prices(request.user))
    row = get_object_or_404(PriceImport.objects.select_related("file", "created_by"), pk=pk)
    return _preview(request, row)


def _preview(
    request: SignedInRequest, row: PriceImport, form: EncodingForm | None = None
) -> HttpResponse:
    context: dict[str, Any] = {
        "row": row,
        "counts": row.counts,
        "crumbs": [
            (OFFERS.title if row.target == PriceImport.Target.OFFERS else HARDWARE.title,
             reverse("offer-list" if row.target == PriceImport.Target.OFFERS else "hardware-price-list")),
            (_("Import prices"), reverse("price-import")),
        ],
    }  # fmt: skip
    if row.status == PriceImport.Status.PREVIEW:
        preview = prices.preview(row)
        context["counts"] = preview.counts
        context["unknown_columns"] = preview.unknown_columns
        if preview.choices is not None:
            form = form or EncodingForm(samples=preview.choices)
            samples = preview.choices.values()
            context["encoding_form"] = form
            context["encodings"] = [
                (radio.tag(), radio.choice_label, sample)
                for radio, sample in zip(form["encoding"], samples, strict=True)
            ]
        words = {
            ADD: (_("will be added"), "good"),
            UNCHANGED: (_("nothing to do"), "neutral"),
            REFUSED: (_("refused"), "bad"),
        }
        ordered = refused_first(preview.fates, lambda fate: fate.fate == REFUSED)
        context["fates"] = [(fate, *words[fate.fate]) for fate in ordered[:ROWS_SHOWN]]
        context["hidden"] = max(len(ordered) - ROWS_SHOWN, 0)
    status = 422 if form is not None and form.is_bound else 200
    return render(request, "catalog/price_import_detail.html", context, status=status)


@require_POST
def price_import_encoding(request: SignedInRequest, pk: int) -> HttpResponse:
    require(policies.can_import_prices(request.user))
    row = get_object_or_404(PriceImport.objects.select_related("file"), pk=pk)
    samples = dict(prices.preview(row).choices or {})
    form = EncodingForm(request.POST, samples=samples)
    if form.is_valid():
        try:
            prices.choose_encoding(pk=pk, encoding=form.cleaned_data["encoding"], by=request.user)
        except InputError as error:
            refuse(form, error)
        else:
            return redirect(row)
    return _preview(request, row, form)


@require_POST
def price_import_apply(request: SignedInRequest, pk: int) -> HttpResponse:
    get_object_or_404(PriceImport, pk=pk)
    seen = request.POST.get("version", "")
    row = prices.apply_import(pk=pk, by=request.user, seen=whole(seen))
    added = row.counts.get(ADD, 0)
    messages.success(
        request,
        ngettext("%(n)s price was added.", "%(n)s prices were added.", added) % {"n": added},
    )
    return redirect(
        "offer-list" if row.target == PriceImport.Target.OFFERS else "hardware-price-list"
    )


@require_POST
def price_import_discard(request: SignedInRequest, pk: int) -> HttpResponse:
    get_object_or_404(PriceImport, pk=pk)
    prices.discard_import(pk=pk, by=request.user)
    messages.success(request, _("The file was put aside. Nothing was added."))
    return redirect("price-import")
