"""Rows of this app, by noun."""

from planning.models.approvals import (
    ApprovalLimit,
    ApprovalPolicy,
    ApprovalRule,
    ApprovalStep,
    Vote,
)
from planning.models.budgets import Budget, BudgetChange, LedgerEntry
from planning.models.delegations import Delegation
from planning.models.discussion import RequestAttachment, RequestComment, RequestWatch
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest, RequestRevision
from planning.models.reviews import CapacityReview, ReviewReport, ReviewSnapshot
from planning.models.studies import MarketSnapshot, Study, StudyBrief

__all__ = [
    "ApprovalLimit",
    "ApprovalPolicy",
    "ApprovalRule",
    "ApprovalStep",
    "Budget",
    "BudgetChange",
    "CapacityRequest",
    "CapacityReview",
    "Delegation",
    "LedgerEntry",
    "MarketSnapshot",
    "PlanChoice",
    "RequestAttachment",
    "RequestComment",
    "RequestRevision",
    "RequestWatch",
    "ReviewReport",
    "ReviewSnapshot",
    "Study",
    "StudyBrief",
    "Vote",
]
