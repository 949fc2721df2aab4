"""How likely each stage is to be approved, with what that rests on."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from core.errors import InputError
from core.http import SignedInRequest
from core.policies import require
from core.refused import say_errors, say_refusal
from planning import policies
from planning.forms.probabilities import PriorForm
from planning.selectors.probabilities import probabilities
from planning.services.probabilities import set_prior


def probability_page(request: SignedInRequest) -> HttpResponse:
    """Shares, counts and assumptions; finance changes the assumptions."""
    require(policies.can_try_scenarios(request.user))
    if request.method == "POST":
        form = PriorForm(request.POST)
        if form.is_valid():
            data = form.cleaned_data
            try:
                set_prior(
                    stage=data["stage"], share=data["percent"] / 100, weight=data["weight"],
                    by=request.user, version=data["version"],
                )  # fmt: skip
            except InputError as error:
                say_refusal(request, error)
            else:
                messages.success(request, _("The assumption was changed."))
        else:
            say_errors(request, form)
        return redirect("probabilities")
    may_edit = policies.can_keep_budgets(request.user)
    rows = [
        {
            "found": found,
            "form": PriorForm(
                auto_id=f"{found.stage}-%s",
                initial={"stage": found.stage, "percent": round(100 * found.prior, 1),
                         "weight": found.weight, "version": found.version},
            ) if may_edit else None,
        }
        for found in probabilities().values()
    ]  # fmt: skip
    return render(request, "planning/probabilities.html", {"rows": rows})
