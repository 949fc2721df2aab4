"""Templates of a team, and one request into several or several into one."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.errors import DomainError, InputError
from core.http import SignedInRequest
from core.refused import say_errors, say_refusal
from core.whole import wholes
from planning import policies
from planning.forms.templates import SplitForm, TemplateForm, TemplateUseForm
from planning.models import CapacityRequest, RequestTemplate
from planning.services import regroup, templates
from planning.views.requests import seen_version, visible
from planning.workloads import WorkloadErrors


def _say(request: SignedInRequest, error: DomainError) -> None:
    for one in error.errors if isinstance(error, WorkloadErrors) else [error]:
        say_refusal(request, one)


@require_safe
def template_list(request: SignedInRequest) -> HttpResponse:
    """Templates of the reader's teams."""
    rows = RequestTemplate.objects.visible_to(request.user).in_use()
    rows = rows.select_related("team", "created_by")
    context = {
        "rows": [(row, policies.can_create(request.user, row.team_id)) for row in rows],
        "form": TemplateUseForm(),
    }
    return render(request, "planning/template_list.html", context)


@require_POST
def template_save(request: SignedInRequest, pk: int) -> HttpResponse:
    found = visible(request, pk)
    form = TemplateForm(request.POST)
    if not form.is_valid():
        say_errors(request, form)
        return redirect(found)
    try:
        templates.save_template(request_id=pk, name=form.cleaned_data["name"], by=request.user)
    except InputError as error:
        _say(request, error)
        return redirect(found)
    messages.success(request, _("The template was saved."))
    return redirect("template-list")


def _template(request: SignedInRequest, pk: int) -> RequestTemplate:
    return get_object_or_404(RequestTemplate.objects.visible_to(request.user).in_use(), pk=pk)


@require_POST
def template_use(request: SignedInRequest, pk: int) -> HttpResponse:
    """A draft from a template, opened for editing."""
    _template(request, pk)
    form = TemplateUseForm(request.POST)
    if not form.is_valid():
        say_errors(request, form)
        return redirect("template-list")
    try:
        draft = templates.draft_from_template(
            template_id=pk, need_by=form.cleaned_data["need_by"], by=request.user
        )
    except (InputError, WorkloadErrors) as error:
        _say(request, error)
        return redirect("template-list")
    messages.success(request, _("The draft was made from the template. Check it, then submit."))
    return redirect("request-edit", pk=draft.pk)


@require_POST
def template_retire(request: SignedInRequest, pk: int) -> HttpResponse:
    _template(request, pk)
    templates.retire_template(template_id=pk, by=request.user)
    messages.success(request, _("The template is out of use."))
    return redirect("template-list")


@require_POST
def request_split(request: SignedInRequest, pk: int) -> HttpResponse:
    """A draft into drafts by shares."""
    found = visible(request, pk)
    form = SplitForm(request.POST)
    if not form.is_valid():
        say_errors(request, form)
        return redirect(found)
    try:
        regroup.split_request(
            request_id=pk,
            shares=form.cleaned_data["shares"],
            by=request.user,
            version=seen_version(request),
        )
    except (InputError, WorkloadErrors) as error:
        _say(request, error)
    else:
        messages.success(request, _("The request was split. The parts are drafts of their own."))
    return redirect(found)


@require_POST
def request_merge(request: SignedInRequest) -> HttpResponse:
    """Drafts that were marked in the list into one."""
    ids = wholes(request.POST.getlist("request"))
    if CapacityRequest.objects.visible_to(request.user).filter(pk__in=ids).count() != len(set(ids)):
        raise Http404
    try:
        merged = regroup.merge_requests(request_ids=ids, by=request.user)
    except (InputError, WorkloadErrors) as error:
        _say(request, error)
        return redirect("request-list")
    messages.success(request, _("The drafts were merged into this one."))
    return redirect(merged)
