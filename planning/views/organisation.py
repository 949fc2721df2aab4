"""What studies take from the organisation."""

from __future__ import annotations

from decimal import Decimal

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from core.http import SignedInRequest
from core.money import trimmed
from core.organisation import organisation
from core.policies import require
from planning import policies
from planning.forms.sites import PurchaseTaxForm, StageForm
from planning.places import country_of_zone
from planning.services.purchase_tax import purchase_tax, set_purchase_tax
from planning.services.stage import set_stage
from planning.study_tables import tax_rate


def organisation_stage(request: SignedInRequest) -> HttpResponse:
    """Choose the stage that advice follows (administrators and budget approvers)."""
    require(policies.can_set_stage(request.user))
    form = StageForm(request.POST or None, initial={"stage": organisation().stage})
    if request.method == "POST" and form.is_valid():
        set_stage(stage=form.cleaned_data["stage"], by=request.user)
        messages.success(request, _("Saved. Studies made from now on follow it."))
        return redirect("organisation-stage")
    status = 422 if form.errors else 200
    return render(request, "planning/organisation_stage.html", {"form": form}, status=status)


def purchase_tax_page(request: SignedInRequest) -> HttpResponse:
    """State the tax on purchases (administrators and finance)."""
    require(policies.can_set_purchase_tax(request.user))
    org = organisation()
    form = PurchaseTaxForm(
        request.POST or None,
        initial={
            "rate": _per_cent(org.purchase_tax_rate),
            "rents": _per_cent(org.rent_tax_rate),
            "reclaimed": org.purchase_tax_reclaimed,
        },
    )
    if request.method == "POST" and form.is_valid():
        set_purchase_tax(
            rate=form.share("rate"),
            rents=form.share("rents"),
            reclaimed=form.cleaned_data["reclaimed"],
            by=request.user,
        )
        messages.success(request, _("Saved. Studies made from now on follow it."))
        return redirect("purchase-tax")
    counted = purchase_tax()
    context = {
        "form": form,
        "counted": counted,
        "rate": counted and tax_rate(counted.rate),
        "rents": counted and tax_rate(counted.rent_rate),
        "country": country_of_zone(org.time_zone),
    }
    status = 422 if form.errors else 200
    return render(request, "planning/purchase_tax.html", context, status=status)


def _per_cent(share: Decimal | None) -> Decimal | None:
    return None if share is None else trimmed(share * 100)
