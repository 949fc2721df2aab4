"""What this app files from a decision of a review: a request, a transfer of budget."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from planning.follow_ups import Kind, register
from planning.policies import can_keep_budgets
from planning.services import follow_ups


def register_own() -> None:
    """Called once, when the app is ready."""
    register(
        Kind(
            name="request", label=_("File a request"), address="review-action-request",
            may=follow_ups.may_file_request, found=follow_ups.requests_of,
            state_label=follow_ups.request_label,
        )
    )  # fmt: skip
    register(
        Kind(
            name="transfer", label=_("Transfer budget"), address="review-action-transfer",
            may=can_keep_budgets, found=follow_ups.transfers_of, state_label=follow_ups.transfer_label,
            at_once=follow_ups.at_once,
        )
    )  # fmt: skip
