"""A decision of a review becomes something at one click; what the recommendation does not tell is asked in a form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.db import models
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from core.errors import DomainError
from core.forms import refuse
from core.http import SignedInRequest
from core.models import Team, User
from planning import policies
from planning.follow_ups import became, kinds_for
from planning.forms.review_work import FileRequestForm, FileTransferForm
from planning.models.budgets import Budget
from planning.models.review_work import ReviewAction
from planning.review_policies import can_see_action
from planning.review_use import pool_words
from planning.services import follow_ups
from planning.services.review_work import may_end


def seen_action(request: SignedInRequest, pk: int) -> ReviewAction:
    """The decision, for its owner and who may see the review."""
    action = get_object_or_404(ReviewAction.objects.select_related("review"), pk=pk)
    if not can_see_action(request.user, action):
        raise Http404
    return action


def file_from(
    request: SignedInRequest,
    action: ReviewAction,
    *,
    title: str,
    submit: str,
    blank: forms.Form,
    filled: Callable[[], forms.Form],
    file: Callable[..., models.Model],
) -> HttpResponse:
    """GET: the form with what is known. POST without fields: file what is known, or show the form with what lacks;
    with fields: file what they say.
    """
    form = blank
    if request.method == "POST":
        typed = any(name in request.POST for name in blank.fields)
        values: dict[str, Any] | None = {}
        if typed:
            form = filled()
            values = form.cleaned_data if form.is_valid() else None
        if values is not None:
            try:
                made: Any = file(action_id=action.pk, by=request.user, **values)
            except DomainError as error:
                if error.status != 422:
                    raise
                form = _told(form, error) if not typed else form
                if typed:
                    refuse(form, error)
            else:
                return redirect(made)
    context = {
        "decision": action,
        "form": form,
        "heading": title,
        "submit": submit,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "planning/follow_up_form.html", context, status=status)


def _told(form: forms.Form, error: DomainError) -> forms.Form:
    """The form with what is known and the error at what is not."""
    form.is_bound, form.cleaned_data = True, {}
    form.data = {
        name: form.get_initial_for_field(field, name) for name, field in form.fields.items()
    }  # type: ignore[assignment]
    form._errors = forms.utils.ErrorDict()  # type: ignore[attr-defined]
    refuse(form, error)
    return form


def shown_decisions(user: User, actions: Iterable[ReviewAction]) -> list[dict[str, Any]]:
    """Decisions with what became of them and what the reader may do."""
    rows = list(actions)
    filed = became([row.pk for row in rows], user)
    kinds = kinds_for(user)
    at_once = {kind.name for kind in kinds if kind.at_once()}
    found = []
    for row in rows:
        is_open = row.status == row.Status.OPEN
        there = {one.kind for one in filed.get(row.pk, [])}
        found.append(
            {
                "action": row,
                "pool": pool_words(row.pool),
                "became": filed.get(row.pk, []),
                "may_end": is_open and may_end(user, row),
                "kinds": [
                    (kind, kind.name in at_once)
                    for kind in kinds
                    if is_open and kind.name not in there
                ],
            }
        )
    return found


@require_http_methods(["GET", "HEAD", "POST"])
def action_request(request: SignedInRequest, pk: int) -> HttpResponse:
    """A draft request for the pool."""
    action = seen_action(request, pk)
    teams = Team.objects.filter(active=True)
    mine = [team.pk for team in teams if policies.can_create(request.user, team.pk)]
    if not mine:
        raise Http404
    teams = teams.filter(pk__in=mine)
    known = {"need_by": action.due_on, **follow_ups.known_request(action)}
    if len(mine) == 1:
        known.setdefault("team", mine[0])
    return file_from(
        request, action, title=_("File a request"), submit=_("File the draft"),
        blank=FileRequestForm(teams=teams, initial=known),
        filled=lambda: FileRequestForm(request.POST, teams=teams),
        file=follow_ups.file_request,
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
def action_transfer(request: SignedInRequest, pk: int) -> HttpResponse:
    """A transfer between the budgets of two teams."""
    action = seen_action(request, pk)
    if not policies.can_keep_budgets(request.user):
        raise Http404
    budgets = Budget.objects.visible_to(request.user).filter(closed_at=None).select_related("team")
    known = {
        "reason": follow_ups.reason_of(action).splitlines()[0][:300],
        **follow_ups.known_transfer(action),
    }
    return file_from(
        request, action, title=_("Transfer budget"), submit=_("Propose the transfer"),
        blank=FileTransferForm(budgets=budgets, initial=known),
        filled=lambda: FileTransferForm(request.POST, budgets=budgets),
        file=lambda **values: follow_ups.file_transfer(**values).budget,
    )  # fmt: skip
