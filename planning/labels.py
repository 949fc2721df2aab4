"""Audit actions of this app in words."""

from django.utils.translation import gettext_lazy as _

from core.labels import name_actions


def name_own_actions() -> None:
    """Called once, when the app is ready."""
    name_actions(
        {
            "request.created": _("Request drafted"),
            "request.edited": _("Draft changed"),
            "request.submitted": _("Request submitted"),
            "request.review_started": _("Review started"),
            "request.recalled": _("Request taken back"),
            "request.returned": _("Returned for changes"),
            "request.revised": _("New revision started"),
            "request.approved": _("Request approved"),
            "request.rejected": _("Request rejected"),
            "request.cancelled": _("Request cancelled"),
            "request.sourcing_started": _("Sourcing started"),
            "request.delivery_counted": _("Accepted cards counted"),
            "request.fulfilled": _("Request fulfilled"),
            "request.commented": _("Comment"),
            "request.watched": _("Watching begun"),
            "request.unwatched": _("Watching ended"),
            "request.file_added": _("File added"),
            "request.file_removed": _("File taken away"),
            "plan.chosen": _("Plan chosen"),
            "study.requested": _("Study asked for"),
            "study.started": _("Study started"),
            "study.finished": _("Study finished"),
            "study.failed": _("Study failed"),
            "study.cancel_requested": _("Study to be cancelled"),
            "study.superseded": _("Study superseded"),
            "study.refused": _("Study not possible"),
            "study.published": _("Study published"),
            "study.brief_made": _("Decision brief made"),
            "study.outdated": _("Study became outdated"),
            "approval_step.opened": _("Decision asked for"),
            "approval_step.approve": _("Voted to approve"),
            "approval_step.return": _("Voted to return"),
            "approval_step.reject": _("Voted to reject"),
            "approval_step.granted": _("Step approved"),
            "approval_step.returned": _("Step returned"),
            "approval_step.rejected": _("Step rejected"),
            "approval_step.void": _("Step void"),
            "approval_step.cancelled": _("Step cancelled"),
            "approval_limit.set": _("Approval limit set"),
            "approval_policy.loaded": _("Approval rules put in force"),
            "delegation.given": _("Stand-in named"),
            "delegation.revoked": _("Delegation ended"),
            "permission.denied": _("Refused: not permitted"),
            "budget.opened": _("Budget opened"),
            "budget.committed": _("Order committed"),
            "budget.spent": _("Spending posted"),
            "budget.overcommitted": _("Approved over budget"),
            "budget.closed": _("Quarter closed"),
            "budget_change.proposed": _("Change proposed"),
            "budget_change.posted": _("Change posted"),
            "budget_change.declined": _("Change declined"),
            "ledger.reversed": _("Posting reversed"),
            "ledger.unsound": _("Ledger does not add up"),
            "reservation.expired": _("Reservation expired"),
        }
    )
