"""How strictly the organisation buys: what is in force, a change, and the second administrator's word on it."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from core.audit import trail
from core.errors import InputError
from core.forms import refuse
from core.http import SignedInRequest
from planning.selectors.second_person import needs_second
from procurement import policies
from procurement.forms.purchasing import PurchasingPolicyForm
from procurement.models import PurchasingPolicy
from procurement.services import policy as service
from procurement.views.common import version_of

STEPS = {
    "confirm": service.confirm_purchasing_policy,
    "decline": service.decline_purchasing_policy,
}


def policy_page(request: SignedInRequest) -> HttpResponse:
    """Administrators read and change it."""
    if not policies.can_set_policy(request.user):
        raise Http404
    policy = PurchasingPolicy.current()
    form = PurchasingPolicyForm(request.POST or None, instance=PurchasingPolicy.current())
    if request.method == "POST" and form.is_valid():
        try:
            changed = service.set_purchasing_policy(
                by=request.user, version=version_of(request), **form.cleaned_data
            )
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(
                request,
                _("The change waits for a second administrator.")
                if changed.waits
                else _("The purchasing policy is set."),
            )
            return redirect("purchasing-policy")
    fields = {name: PurchasingPolicy._meta.get_field(name) for name in service.FIELDS}
    wanted, since = service.proposed_values(policy), service.changed_since(policy)
    context = {
        "form": form,
        "policy": policy,
        "needs_second": needs_second(though_alone=True),
        "may_confirm": bool(policy.proposed)
        and not since
        and policies.can_confirm_policy(request.user, policy),
        "changed_since": bool(since),
        "changes": [
            (fields[name].verbose_name, getattr(policy, name), value, since.get(name))  # type: ignore[union-attr]
            for name, value in wanted.items()
        ],
        "trail": trail(policy)[:40] if policy.pk else [],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "procurement/policy.html", context, status=status)


@require_POST
def policy_step(request: SignedInRequest, step: str) -> HttpResponse:
    """Agree to the change that waits, or drop it."""
    if step not in STEPS or not policies.can_set_policy(request.user):
        raise Http404
    STEPS[step](by=request.user, version=version_of(request))
    messages.success(
        request,
        _("The purchasing policy is set.") if step == "confirm" else _("The change is dropped."),
    )
    return redirect("purchasing-policy")
