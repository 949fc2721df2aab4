"""The approver's inbox, decisions, stand-ins and policies."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core import stale
from core.errors import InputError, InvalidTransition, StaleData
from core.forms import refuse
from core.http import SignedInRequest
from core.organisation import organisation, quarter_at, today
from core.policies import can_agree_as_second, require
from core.refused import say_errors
from core.sign_in import page_of
from core.templatetags.ui import said
from core.whole import whole
from planning import policies
from planning.forms.approvals import (
    DecisionForm,
    DelegationForm,
    LimitForm,
    PolicyOptionsForm,
    PresetForm,
    RuleFormSet,
    given_rules,
    rules_of,
)
from planning.models import (
    ApprovalLimit,
    ApprovalPolicy,
    ApprovalStep,
    CapacityRequest,
    Delegation,
)
from planning.models.approvals import Standing
from planning.plan_rows import bases
from planning.selectors.approvals import inbox
from planning.selectors.conditions import below_plan
from planning.selectors.second_person import needs_second
from planning.selectors.spread import effects
from planning.services import approvals
from planning.services.limits import set_limit
from planning.services.policy_edit import OPTIONS, edit_policy
from planning.services.policy_presets import load_policy
from planning.services.policy_versions import confirm_policy, decline_policy
from planning.states import RequestStatus
from planning.views.requests import seen_version, stale_page, visible
from planning.waiting import decisions

POLICY_STEPS = {"confirm": confirm_policy, "decline": decline_policy}


@require_safe
def approval_list(request: SignedInRequest) -> HttpResponse:
    """What waits for this person's decision, with what it would do to the budget and what changed since last time."""
    items, current = inbox(request.user), organisation()
    chosen = [item.step.revision.plan for item in items]
    found, basis = effects(chosen, quarter_at(org=current)), bases(chosen)
    rows = [
        {"item": item, "effect": found[plan.pk], "basis": basis.get(plan.pk)}
        for item, plan in zip(items, chosen, strict=True)
    ]
    standing_in = Delegation.objects.active_on(today(current)).filter(delegate=request.user)
    context = {
        "rows": rows,
        "others": decisions(request.user),
        "standing_in": standing_in.select_related("principal"),
    }
    return render(request, "planning/approval_list.html", context)


@require_POST
def approval_decide(request: SignedInRequest, pk: int) -> HttpResponse:
    """Cast a vote. Only by POST: a link in a mail leads to the page and decides nothing."""
    step = get_object_or_404(
        ApprovalStep.objects.select_related("revision__plan", "revision__request"),
        pk=pk,
        revision__request__in=CapacityRequest.objects.visible_to(request.user).values("pk"),
    )
    form = DecisionForm(request.POST)
    if form.is_valid():
        try:
            approvals.decide(step_id=pk, by=request.user, **form.cleaned_data)
        except (StaleData, InvalidTransition) as error:
            found = visible(request, step.revision.request_id)
            voted = step.votes.filter(voter=request.user).exists()
            if voted or (
                isinstance(error, InvalidTransition)
                and step.revision.number == found.revision_number
                and found.status == RequestStatus.IN_REVIEW
            ):
                raise  # it is as it was on the screen: not the page is old, the step is not possible
            return stale_page(
                request, found, StaleData(), seen=step.revision, typed=form.cleaned_data["reason"]
            )
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(request, _("Your decision was recorded."))
            if warning := below_plan(form.cleaned_data["cap"], step.revision.plan):
                messages.warning(request, said(warning))
            return redirect("request-detail", pk=step.revision.request_id)
    say_errors(request, form)
    if urlsplit(page_of(request)).path == reverse("approval-list"):
        return redirect("approval-list")  # where it was typed
    return redirect("request-detail", pk=step.revision.request_id)


def delegation_list(request: SignedInRequest) -> HttpResponse:
    """Who decides for me, for whom I decide, and a form to hand over for some days."""
    user = request.user
    form = DelegationForm(request.POST or None, user=user)
    if request.method == "POST" and form.is_valid():
        try:
            approvals.delegate(principal=user, by=user, **form.cleaned_data)
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(request, _("Your stand-in was told."))
            return redirect("delegation-list")
    rows = Delegation.objects.filter(Q(principal=user) | Q(delegate=user))
    context = {
        "form": form,
        "may_delegate": policies.can_delegate(user),
        "today": today(),
        "rows": [
            (
                row,
                policies.can_revoke(user, row)
                and row.revoked_at is None
                and row.last_day >= today(),
            )
            for row in rows.select_related("principal", "delegate")
        ],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "planning/delegation_list.html", context, status=status)


@require_POST
def delegation_revoke(request: SignedInRequest, pk: int) -> HttpResponse:
    user = request.user
    get_object_or_404(Delegation, Q(principal=user) | Q(delegate=user), pk=pk)
    approvals.revoke_delegation(delegation_id=pk, by=user)
    messages.success(request, _("The delegation ended."))
    return redirect("delegation-list")


def policy_list(request: SignedInRequest) -> HttpResponse:
    """The rules in force, for everyone to read; administrators choose another preset."""
    if request.method == "POST":
        form = PresetForm(request.POST)
        if form.is_valid():
            loaded = load_policy(
                preset=form.cleaned_data["preset"], by=request.user, seen=seen_version(request)
            )
            messages.success(
                request,
                _("The change waits for a second administrator.")
                if loaded.standing == Standing.WAITING
                else _("The preset is in force. Running reviews keep their steps."),
            )
        return redirect("policy-list")
    active = ApprovalPolicy.objects.prefetch_related("rules__team").filter(active=True).first()
    rows = ApprovalPolicy.objects.select_related("loaded_by", "decided_by")
    waiting = rows.filter(standing=Standing.WAITING).first()
    context = {
        "policy": active,
        "waiting": waiting,
        "needs_second": needs_second(),
        **_may_decide(request, waiting),
        "versions": rows.order_by("-pk")[:50],
        "form": PresetForm(initial={"preset": active.preset} if active else None),
        "may_load": policies.can_load_policy(request.user),
        "limit_form": LimitForm(initial={"currency": organisation().currency}),
        "limits": ApprovalLimit.objects.select_related("user").order_by("user__name"),
    }
    return render(request, "planning/policy_list.html", context)


@require_POST
def limit_set(request: SignedInRequest) -> HttpResponse:
    """Set or lift a person's limit (administrator, not for oneself)."""
    form = LimitForm(request.POST)
    if form.is_valid():
        set_limit(by=request.user, **form.cleaned_data)
        messages.success(request, _("The limit was set."))
    else:
        say_errors(request, form)
    return redirect("policy-list")


@require_safe
def policy_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One version of the rules, as it was."""
    rows = ApprovalPolicy.objects.select_related("loaded_by", "decided_by")
    policy = get_object_or_404(rows.prefetch_related("rules__team"), pk=pk)
    context = {"policy": policy, **_may_decide(request, policy)}
    return render(request, "planning/policy_detail.html", context)


def _may_decide(request: SignedInRequest, waiting: ApprovalPolicy | None) -> dict[str, bool]:
    """What the reader may do with a version that waits."""
    waits = waiting is not None and waiting.standing == Standing.WAITING
    return {
        "may_drop": waits and policies.can_load_policy(request.user),
        "may_confirm": waiting is not None
        and waits
        and can_agree_as_second(request.user, waiting.loaded_by_id),
    }


@require_POST
def policy_step(request: SignedInRequest, pk: int, step: str) -> HttpResponse:
    """Agree to the version that waits, or drop it."""
    if step not in POLICY_STEPS:
        raise Http404
    get_object_or_404(ApprovalPolicy, pk=pk)
    POLICY_STEPS[step](policy_id=pk, by=request.user)
    messages.success(
        request,
        _("The new version is in force. Requests keep theirs.")
        if step == "confirm"
        else _("The change is dropped."),
    )
    return redirect("policy-list")


def policy_edit(request: SignedInRequest) -> HttpResponse:
    """The rules in a form; saving makes the next version (administrator)."""
    require(policies.can_load_policy(request.user))
    policy = ApprovalPolicy.objects.prefetch_related("rules").filter(active=True).first()
    formset = RuleFormSet(
        request.POST or None, initial=rules_of(policy) if policy else [], prefix="rules"
    )
    form = PolicyOptionsForm(request.POST or None, instance=policy, initial={"note": ""})
    status, old = 200, None
    if request.method == "POST":
        status = 422
        if form.is_valid() and formset.is_valid():
            seen = request.POST.get("version", "")
            try:
                edited = edit_policy(
                    rules=given_rules(formset),
                    options={name: form.cleaned_data[name] for name in OPTIONS},
                    note=form.cleaned_data["note"],
                    by=request.user,
                    seen=whole(seen),
                )
            except InputError as error:
                refuse(form, error)
            except StaleData as error:
                old, status = error, 409
            else:
                messages.success(
                    request,
                    _("The change waits for a second administrator.")
                    if edited.standing == Standing.WAITING
                    else _("The new version is in force. Requests keep theirs."),
                )
                return redirect("policy-list")
    if policy is not None:
        policy.refresh_from_db()  # a refused form has put its values on the row
    context = {
        "form": form, "formset": formset, "policy": policy, "needs_second": needs_second(),
        "stale": old, "changes": stale.rows(old) if old is not None else [],
    }  # fmt: skip
    return render(request, "planning/policy_edit.html", context, status=status)
