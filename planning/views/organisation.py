"""What studies take from the organisation."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from core.http import SignedInRequest
from core.organisation import organisation
from core.policies import require
from planning import policies
from planning.forms.sites import StageForm
from planning.services.stage import set_stage


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
