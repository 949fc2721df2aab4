"""Pages of capacity requests: list, one request, write, change, and the steps on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import DomainError, InputError, StaleData
from core.forms import refuse
from core.http import SignedInRequest
from core.organisation import quarter_at, today
from core.refused import say_errors, say_refusal
from core.templatetags.ui import said
from core.whole import whole
from planning import policies, tables
from planning.filters import RequestFilter
from planning.forms.bulk import SaveFilterForm
from planning.forms.capacity import BookForm
from planning.forms.discussion import CommentForm, FileForm
from planning.forms.requests import FulfilForm, OptionalReasonForm, RequestForm, SubmitForm
from planning.forms.templates import SplitForm, TemplateForm
from planning.load_charts import load_charts
from planning.models import (
    ApprovalStep,
    CapacityRequest,
    PlanChoice,
    RequestRevision,
    RequestTemplate,
    RevisionUse,
    SavedFilter,
)
from planning.plan_rows import bases
from planning.selectors.approvals import (
    deciders,
    differences,
    last_approved,
    steps_with_facts,
    why_not,
)
from planning.selectors.budgets import similar
from planning.selectors.conditions import below_plan
from planning.selectors.origins import origins
from planning.selectors.readers import handle_names, readers
from planning.selectors.review_work import action_behind, decided_in
from planning.selectors.spread import effects
from planning.selectors.team_use import team_use, use_of
from planning.services import plans, requests
from planning.services.allocations import BOOKABLE
from planning.services.imports import may_import
from planning.services.ledger import policy_in_force
from planning.states import RequestStatus, StepStatus
from planning.study.workloads import ONLINE
from planning.workloads import Kind, WorkloadErrors

PAGE = 50


@require_safe
def request_list(request: SignedInRequest) -> HttpResponse:
    """Requests the reader may see; the address keeps the filter."""
    rows = CapacityRequest.objects.visible_to(request.user).with_current()
    found = RequestFilter(request.GET, queryset=rows, request=request)
    context = {
        "filter": found,
        "page": Paginator(found.qs, PAGE).get_page(request.GET.get("page")),
        "may_create": policies.can_create_anywhere(request.user),
        "may_import": may_import(request.user),
        "saved": SavedFilter.objects.visible_to(request.user).select_related("owner"),
        "save_form": SaveFilterForm(initial={"query": request.GET.urlencode()}),
        "query": request.GET.urlencode(),
    }
    return render(request, "planning/request_list.html", context)


def visible(request: SignedInRequest, pk: int) -> CapacityRequest:
    """The request, or 404 outside the reader's teams."""
    return get_object_or_404(CapacityRequest.objects.visible_to(request.user).with_current(), pk=pk)


@dataclass(frozen=True, slots=True)
class Step:
    """A step a person may take from the page."""

    action: str
    label: Any
    text: Any
    form: type[forms.Form] | None = None
    tone: str = "primary"


STEPS: dict[str, Step] = {
    step.action: step
    for step in (
        Step("submit", gettext_lazy("Submit"),
             gettext_lazy("The revision is frozen. With a plan chosen the review starts at once."), SubmitForm),
        Step("start_sourcing", gettext_lazy("Start sourcing"),
             gettext_lazy("Procurement takes it from here.")),
        Step("fulfil", gettext_lazy("Record fulfilment"),
             gettext_lazy("With fewer than asked for, a reason closes the request short."), FulfilForm),
        Step("recall", gettext_lazy("Take back"),
             gettext_lazy("Steps become void and the reservation is released. A new revision starts as a copy."),
             OptionalReasonForm, "danger"),
        Step("revise", gettext_lazy("Revise"),
             gettext_lazy("A new revision starts as a copy. Approvals of this one end, and those concerned are told."),
             OptionalReasonForm),
        Step("cancel", gettext_lazy("Withdraw"),
             gettext_lazy("The request ends and its reservation is released. This cannot be undone."),
             OptionalReasonForm, "danger"),
    )
}  # fmt: skip


@require_safe
def request_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One request: what is asked, the plan, the approvals, the money, what happened."""
    return render(
        request, "planning/request_detail.html", detail_context(request, visible(request, pk))
    )


def detail_context(request: SignedInRequest, found: CapacityRequest) -> dict[str, Any]:
    """Everything the page of a request shows to this reader."""
    user = request.user
    revision = found.current
    plan = getattr(revision, "plan", None)
    revisions = list(found.revisions.select_related("plan", "request", "submitted_by"))
    steps = list(
        steps_with_facts(ApprovalStep.objects.filter(revision=revision)).order_by("group", "pk")
    )
    pending = [step for step in steps if step.status == StepStatus.PENDING]
    before = last_approved(revision)
    use = use_of(found, policy_in_force(), today())
    return {
        "capacity_request": found,
        "version": str(found.version),
        "revision": revision,
        "plan": plan,
        "facts": tables.revision_facts(revision),
        "loads": load_charts(revision.workload),
        "plan_facts": tables.plan_facts(plan) if plan else [],
        "steps": [
            {
                "step": step,
                "why_not": why_not(user, step),
                "warnings": [
                    said(warning)
                    for vote in step.votes.all()
                    if plan and (warning := below_plan(vote.cap, plan))
                ],
                "deciders": deciders(step),
            }
            if step in pending
            else {"step": step}
            for step in steps
        ],
        "before": before,
        "changes": tables.difference_rows(differences(before, revision)) if before else [],
        "history": [
            (newer, tables.difference_rows(differences(older, newer)))
            for newer, older in pairwise(revisions)
        ],
        "basis": bases([plan]).get(plan.pk) if plan is not None else None,
        "effect": effects([plan], quarter_at())[plan.pk]
        if plan
        and found.status in (RequestStatus.DRAFT, RequestStatus.SUBMITTED, RequestStatus.IN_REVIEW)
        else None,
        "ledger": found.ledger.select_related("budget__team", "posted_by").order_by("-id")[:100],
        "similar": similar(found, CapacityRequest.objects.visible_to(user)) if pending else [],
        "studies": revision.studies.light().select_related("job"),
        "may_study": policies.can_study(user, found),
        "may_edit": policies.can(user, "edit", found),
        "has_load_page": found.kind in ONLINE,
        "may_choose": policies.can(user, "choose_plan", found),
        "may_copy": policies.can_copy(user, found),
        "use": use,
        "decided_in": decided_in(action_behind(request=found), user),
        "actions": [
            {"step": step, "form": _step_form(step, revision, use)}
            for step in STEPS.values()
            if policies.can(user, step.action, found)
        ],
        "trail": trail(found, *steps)[:60],
        "origins": origins(found, CapacityRequest.objects.visible_to(user)),
        "split_form": SplitForm(auto_id="split-%s") if policies.can(user, "split", found) else None,
        "template_form": TemplateForm(auto_id="template-%s"),
        "allocations": found.allocations.standing().select_related("pool"),
        "book_form": _book_form(found, plan)
        if plan and policies.can_allocate(user) and found.status in BOOKABLE
        else None,
        "comments": found.comments.select_related("author").prefetch_related("mentions"),
        "files": found.attachments.filter(removed_at=None).select_related("file", "added_by"),
        "may_comment": policies.can_comment(user, found),
        "watching": found.watches.filter(user=user).exists(),
        "handles": handle_names(readers(found.team)),
        "comment_form": CommentForm(),
        "file_form": FileForm(),
    }


def _step_form(step: Step, revision: RequestRevision, use: RevisionUse | None) -> forms.Form | None:
    """The form of a step; submitting asks for a reason only where little of what the team has is used."""
    if step.form is None or (step.action == "submit" and not (use is not None and use.low)):
        return None
    initial = {}
    if step.action == "submit":
        before = RevisionUse.objects.filter(revision__request=revision.request).last()
        initial = {"use_reason": before.reason if before else ""}
    return step.form(auto_id=f"{step.action}-%s", initial=initial)


def _templates(request: SignedInRequest) -> list[RequestTemplate]:
    rows = RequestTemplate.objects.visible_to(request.user).in_use().select_related("team")
    return [row for row in rows if policies.can_create(request.user, row.team_id)]


def _book_form(found: CapacityRequest, plan: PlanChoice) -> BookForm:
    revision = found.current
    first = max(revision.start or revision.need_by, today())
    days = revision.duration_days
    last = first + timedelta(days=days - 1) if days else None
    initial = {"cards": plan.cards, "first_day": first, "last_day": last}
    return BookForm(auto_id="book-%s", initial=initial)


@require_safe
def request_kinds(request: SignedInRequest) -> HttpResponse:
    """First question: what is to be run."""
    if not policies.can_create_anywhere(request.user):
        raise Http404
    return render(
        request, "planning/request_kinds.html", {"kinds": Kind, "templates": _templates(request)}
    )


def request_create(request: SignedInRequest, kind: str) -> HttpResponse:
    """Second: what that kind needs."""
    if kind not in Kind.values or not policies.can_create_anywhere(request.user):
        raise Http404
    form = RequestForm(request.POST or None, request.FILES or None, kind=kind, user=request.user)
    if request.method == "POST" and form.is_valid():
        try:
            created = requests.create_request(
                kind=kind, by=request.user, **form.service_arguments()
            )
        except (InputError, WorkloadErrors) as error:
            _refuse(form, error)
        else:
            messages.success(request, _("The draft was saved."))
            return redirect(created)
    return _form_page(request, form, {"kind": Kind(kind)})


def request_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change a draft. Saved from a page that is no longer current, it shows the difference and keeps what was typed."""
    found = visible(request, pk)
    policies.require_action(request.user, "edit", found)
    form = RequestForm(
        request.POST or None, request.FILES or None, kind=found.kind, user=request.user,
        revision=found.current,
    )  # fmt: skip
    context: dict[str, Any] = {
        "kind": Kind(found.kind), "capacity_request": found, "version": found.version,
    }  # fmt: skip
    if request.method == "POST" and form.is_valid():
        try:
            requests.update_draft(
                request_id=pk,
                by=request.user,
                version=seen_version(request),
                **form.service_arguments(),
            )
        except StaleData as error:
            context["conflicts"] = tables.conflict_rows(error.changes)
            return _form_page(request, form, context, status=409)
        except (InputError, WorkloadErrors) as error:
            _refuse(form, error)
        else:
            messages.success(request, _("The draft was saved."))
            return redirect(found)
    elif request.method == "POST":
        context["version"] = seen_version(request)
    return _form_page(request, form, context)


def _form_page(
    request: SignedInRequest, form: RequestForm, context: dict[str, Any], status: int = 0
) -> HttpResponse:
    status = status or (422 if form.is_bound else 200)
    return render(request, "planning/request_form.html", {"form": form, **context}, status=status)


def _refuse(form: RequestForm, error: DomainError) -> None:
    for one in error.errors if isinstance(error, WorkloadErrors) else [error]:
        if isinstance(one, InputError):
            form.refuse(one)
        else:
            refuse(form, one)


@require_POST
def request_check(request: SignedInRequest, kind: str) -> HttpResponse:
    """What the form holds so far, for the panel beside it: what is missing or wrong, and what was understood."""
    if kind not in Kind.values:
        raise Http404
    found = (
        CapacityRequest.objects.visible_to(request.user)
        .filter(pk=request.GET.get("of") or 0)
        .first()
    )
    form = RequestForm(
        request.POST, kind=kind, user=request.user, revision=found.current if found else None
    )
    form.is_valid()
    problems: list[tuple[str, Sequence[Any]]] = [
        (str(form.fields[name].label) if name in form.fields else "", errors)
        for name, errors in form.errors.items()
        if name not in form.fields or str(form.data.get(name, "")).strip()
    ]
    wrong: dict[str, list[str]] = {
        name: [str(error) for error in errors] for name, errors in form.errors.items()
    }
    if form.is_valid():
        for name, text in form.doubts():
            problems.append((str(form.fields[name].label), [text]))
            wrong[name] = [text]
    missing = [
        form.fields[name].label
        for name in form.errors
        if name in form.fields and not str(form.data.get(name, "")).strip()
    ]
    understood = [
        (tables.label(name), tables.value(name, shown))
        for name, shown in getattr(form, "clean_workload", {}).items()
    ]
    team = found.team if found else form.cleaned_data.get("team")
    context = {
        "problems": problems, "missing": missing, "understood": understood, "form": form,
        "wrong": wrong, "still_wrong": json.dumps(sorted(wrong)),
        "use": team_use(team.pk, policy_in_force(), today()) if team else None, "team": team,
    }  # fmt: skip
    return render(request, "planning/_estimate.html", context)


def seen_version(request: SignedInRequest) -> int | None:
    """The version of the request that the page was drawn from."""
    raw = request.POST.get("version", "")
    return whole(raw)


CALLS: dict[str, Callable[..., CapacityRequest]] = {
    "submit": requests.submit_request,
    "recall": requests.recall,
    "revise": requests.revise,
    "cancel": requests.cancel_request,
    "start_sourcing": requests.start_sourcing,
}


@require_POST
def request_step(request: SignedInRequest, pk: int, action: str) -> HttpResponse:
    """Take one step of STEPS. Refusals become pages by the middleware."""
    found = visible(request, pk)
    step = STEPS[action]
    form = step.form(request.POST, auto_id=f"{action}-%s") if step.form else None
    facts: dict[str, Any] = {}
    if form is not None:
        if not form.is_valid():
            return _refused(request, found, form, action)
        facts = dict(form.cleaned_data)
    try:
        if action == "fulfil":
            requests.record_fulfilment(
                request_id=pk,
                by=request.user,
                accepted=facts["accepted"],
                short_close_reason=facts["reason"],
            )
        else:
            CALLS[action](request_id=pk, by=request.user, version=seen_version(request), **facts)
    except StaleData as error:
        since = seen_version(request)
        return stale_page(
            request, visible(request, pk), error, since=since,
            typed=" ".join(str(value) for value in facts.values() if isinstance(value, str)),
        )  # fmt: skip
    except InputError as error:
        say_refusal(request, error)
        on_the_form = action == "submit" and error.field != "use_reason"
        return redirect(
            reverse("request-edit", args=[pk]) if on_the_form else found.get_absolute_url()
        )
    if action == "revise":
        return redirect("request-edit", pk=pk)
    return redirect(found)


def stale_page(
    request: SignedInRequest,
    found: CapacityRequest,
    error: DomainError,
    *,
    seen: RequestRevision | None = None,
    since: int | None = None,
    typed: str = "",
) -> HttpResponse:
    """The page of a request as it is now, with what differs from what was on the screen: `seen` is the revision then,
    `since` the version then. What was typed stands there to be copied; nothing was saved."""
    context = detail_context(request, found)
    now = context["revision"]
    differs = seen is not None and seen.number != now.number
    steps = found.version - since if since is not None else 5
    context["stale"] = {
        "text": error.message.render(_),
        "number": seen.number if seen is not None else now.number,
        "changes": tables.difference_rows(differences(seen, now)) if differs and seen else [],
        "happened": trail(found, *[row["step"] for row in context["steps"]])[
            : max(min(steps, 10), 1)
        ],
        "typed": typed.strip(),
    }
    return render(request, "planning/request_detail.html", context, status=409)


def _refused(
    request: SignedInRequest, found: CapacityRequest, form: forms.Form, action: str
) -> HttpResponse:
    context = detail_context(request, found)
    for row in context["actions"]:
        if row["step"].action == action:
            row["form"] = form
    say_errors(request, form)
    return render(request, "planning/request_detail.html", context, status=422)


@require_POST
def request_copy(request: SignedInRequest, pk: int) -> HttpResponse:
    """A new draft with the same content."""
    visible(request, pk)
    copy = requests.copy_request(request_id=pk, by=request.user)
    messages.success(request, _("This is the copy, a draft of its own."))
    return redirect(copy)


@require_POST
def request_plan(request: SignedInRequest, pk: int) -> HttpResponse:
    """Choose one plan of a study of this request."""
    found = visible(request, pk)
    study = request.POST.get("study", "")
    if not found.revisions.filter(studies=whole(study) or 0).exists():
        raise Http404
    plans.choose_plan(
        revision_id=found.current.pk,
        study_id=int(study),
        plan_key=request.POST.get("plan_key", ""),
        by=request.user,
        version=seen_version(request),
    )
    messages.success(request, _("The plan was chosen."))
    return redirect(found)
