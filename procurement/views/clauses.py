"""The clause library: what is offered, each clause's versions, a new one."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.audit import trail
from core.errors import InputError
from core.forms import refuse
from core.http import SignedInRequest
from procurement import policies
from procurement.forms.clauses import ClauseForm
from procurement.models import PurchasingPolicy
from procurement.selectors.clauses import current_clauses, versions_of, word_warnings
from procurement.selectors.precedence import label_of, shown_term
from procurement.services.clauses import write_clause
from procurement.views.common import version_of


@require_safe
def clause_list(request: SignedInRequest) -> HttpResponse:
    if not policies.can_read_clauses(request.user):
        raise Http404
    hours = PurchasingPolicy.current().burn_in_hours
    context = {
        "clauses": [
            (clause, word_warnings(clause, hours))
            for clause in current_clauses(retired=True).values()
        ],
        "may_write": policies.can_keep_clauses(request.user),
    }
    return render(request, "procurement/clause_list.html", context)


def clause_create(request: SignedInRequest) -> HttpResponse:
    return _written(request, "")


def clause_detail(request: SignedInRequest, code: str) -> HttpResponse:
    """Every version, and the form for the next."""
    return _written(request, code)


def _written(request: SignedInRequest, code: str) -> HttpResponse:
    versions = versions_of(code) if code else []
    may_write = policies.can_keep_clauses(request.user)
    if not policies.can_read_clauses(request.user) or (bool(code) != bool(versions)):
        raise Http404
    if not may_write and (not code or request.method == "POST"):
        raise Http404
    form = ClauseForm(request.POST or None, clause=versions[0] if versions else None)
    if request.method == "POST" and form.is_valid():
        values = {"code": code, **form.service_arguments()}
        try:
            write_clause(by=request.user, version=version_of(request) or 0, **values)
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(
                request, _("Kept as a new version. RFQs that were issued keep the words they were issued with.")
            )  # fmt: skip
            return redirect("clause-detail", code=values["code"])
    context = {
        "versions": [
            (row, [(label_of(name), shown_term(name, value)) for name, value in row.asks.items()])
            for row in versions
        ],
        "clause": versions[0] if versions else None,
        "warnings": word_warnings(versions[0]) if versions else [],
        "form": form if may_write else None,
        "trail": trail(*versions)[:40] if versions else [],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "procurement/clause_detail.html", context, status=status)
