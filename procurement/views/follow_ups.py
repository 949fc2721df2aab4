"""A decision of a capacity review becomes an RFQ at one click."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from core.http import SignedInRequest
from planning.models import CapacityRequest
from planning.views.follow_ups import file_from, seen_action
from procurement.forms.rfqs import RequestChoice
from procurement.models import Rfq
from procurement.services import follow_ups
from procurement.sourceable import sourceable


class FileRfqForm(forms.Form):
    """Which approved requests the RFQ is made of."""

    requests = RequestChoice(
        CapacityRequest.objects.none(),
        label=gettext_lazy("Requests to buy for"),
        widget=forms.CheckboxSelectMultiple(),
    )

    def __init__(self, data: Any = None, *, rows: Any, initial: Any = None) -> None:
        super().__init__(data, initial=initial)
        self.fields["requests"].queryset = rows  # type: ignore[attr-defined]


@require_http_methods(["GET", "HEAD", "POST"])
def action_rfq(request: SignedInRequest, pk: int) -> HttpResponse:
    """A draft of what is approved for the decision; publishing it stays a step of its own."""
    action = seen_action(request, pk)
    if not follow_ups.may_file(request.user):
        raise Http404
    rows = sourceable(request.user)
    known = [row.pk for row in follow_ups.known_requests(action, request.user)]

    def file(*, requests: Any = None, **values: Any) -> Rfq:
        ids = None if requests is None else [row.pk for row in requests]
        return follow_ups.file_rfq(request_ids=ids, **values)

    return file_from(
        request, action, title=_("Draft an RFQ"), submit=_("File the draft"),
        blank=FileRfqForm(rows=rows, initial={"requests": known}),
        filled=lambda: FileRfqForm(request.POST, rows=rows),
        file=file,
    )  # fmt: skip
