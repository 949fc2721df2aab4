"""Freezing a capacity review: procurement adds what it knows and hands it down."""

from __future__ import annotations

from core.models import User
from core.organisation import organisation
from planning.models.reviews import CapacityReview, ReviewSnapshot
from planning.services import reviews
from procurement.selectors.actuals import quarter_actuals


def freeze_review(
    *, review_id: int, by: User | None, reason: str = "", seen_version: int | None = None
) -> ReviewSnapshot:
    """Read deliveries and acceptance, then freeze all figures. Raises what planning's freeze_review raises."""
    review = CapacityReview.objects.select_related("team").get(pk=review_id)
    actuals = quarter_actuals(period=review.period, organisation=organisation())
    return reviews.freeze_review(
        review_id=review_id, actuals=actuals, by=by, reason=reason, seen_version=seen_version
    )


def freeze_due_reviews() -> int:
    """Freeze every review whose quarter has ended. Returns how many; repeating does nothing."""
    due = reviews.due_reviews()
    for review_id in due:
        freeze_review(review_id=review_id, by=None)
    return len(due)
