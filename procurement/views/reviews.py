"""Freezing a review's figures from its page."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from core.http import SignedInRequest
from planning.forms.reviews import FreezeForm
from planning.selectors.reviews import visible_reviews
from procurement.services.reviews import freeze_review


@require_POST
def review_freeze(request: SignedInRequest, pk: int) -> HttpResponse:
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    form = FreezeForm(request.POST, again=review.snapshots.exists())
    if not form.is_valid():
        return render(
            request, "planning/review_freeze.html", {"review": review, "form": form}, status=422
        )
    freeze_review(
        review_id=review.pk,
        by=request.user,
        reason=form.cleaned_data["reason"],
        seen_version=form.cleaned_data["version"],
    )
    return redirect(review)
