"""The trouble finder: symptom, questions, likely causes, checks, remedies."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.http import SignedInRequest
from core.templatetags.ui import percent, span
from planning import policies, trouble
from planning.selectors.signs import signs_of
from planning.trouble_table import BY_KEY, SYMPTOMS


@require_safe
def trouble_list(request: SignedInRequest) -> HttpResponse:
    return render(request, "planning/trouble_list.html", {"symptoms": SYMPTOMS})


@require_safe
def trouble_detail(request: SignedInRequest, key: str) -> HttpResponse:
    """Causes ranked by the answers in the address and by what the reader's teams' telemetry shows."""
    symptom = BY_KEY.get(key)
    if symptom is None:
        raise Http404
    answers = {
        question.key: request.GET[question.key] == "yes"
        for question in symptom.questions
        if request.GET.get(question.key) in ("yes", "no")
    }
    signs = signs_of(request.user)
    return render(
        request,
        "planning/trouble_detail.html",
        {
            "may_create": policies.can_create_anywhere(request.user),
            "symptom": symptom,
            "questions": [(q, request.GET.get(q.key, "")) for q in symptom.questions],
            "choices": [("yes", _("Yes")), ("no", _("No")), ("", _("not known"))],
            "causes": trouble.ranked(symptom, answers, signs),
            "shown": shown(signs),
        },
    )


def shown(signs: trouble.Signs) -> list[tuple[str, str]]:
    """Facts of the last weeks, where telemetry told any."""
    facts = [
        (_("GPU utilisation"), percent(signs.utilization)),
        (_("SM activity"), percent(signs.sm)),
        (_("Memory in use"), percent(signs.memory)),
        (_("Queue, p90"), span(signs.queue)),
    ]
    known = [fact for fact in facts if fact[1] != "–"]
    return [*known, (_("Interrupted jobs"), str(signs.interrupted))] if known else []
