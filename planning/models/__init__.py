"""Rows of this app, by noun."""

from planning.models.allocations import Allocation, CapacityPool
from planning.models.approvals import (
    ApprovalLimit,
    ApprovalPolicy,
    ApprovalRule,
    ApprovalStep,
    OverApproval,
    Vote,
)
from planning.models.budgets import Budget, BudgetChange, LedgerEntry
from planning.models.bulk import RequestImport, SavedFilter
from planning.models.calibration import CalibrationVersion, MeasuredOutcome
from planning.models.delegations import Delegation
from planning.models.discussion import RequestAttachment, RequestComment, RequestWatch
from planning.models.month_one import MonthOneReview, ReviewRules
from planning.models.plans import PlanChoice
from planning.models.probabilities import StagePrior
from planning.models.requests import CapacityRequest, RequestRevision
from planning.models.review_schedules import ReviewSchedule
from planning.models.review_work import ReviewAction, TeamPlan
from planning.models.reviews import CapacityReview, ReviewReport, ReviewSnapshot
from planning.models.sites import Site
from planning.models.studies import MarketSnapshot, Study, StudyBrief
from planning.models.team_use import RevisionUse
from planning.models.telemetry import (
    BillLine,
    CardDay,
    CardHour,
    CardMonth,
    CardSeries,
    ClusterUse,
    HourSamples,
    Ingestion,
    JobRun,
    PoolDay,
    TelemetryCard,
    TelemetrySource,
)
from planning.models.templates import Relation, RequestLink, RequestTemplate

__all__ = [
    "Allocation",
    "ApprovalLimit",
    "ApprovalPolicy",
    "ApprovalRule",
    "ApprovalStep",
    "BillLine",
    "Budget",
    "BudgetChange",
    "CalibrationVersion",
    "CapacityPool",
    "CapacityRequest",
    "CapacityReview",
    "CardDay",
    "CardHour",
    "CardMonth",
    "CardSeries",
    "ClusterUse",
    "Delegation",
    "HourSamples",
    "Ingestion",
    "JobRun",
    "LedgerEntry",
    "MarketSnapshot",
    "MeasuredOutcome",
    "MonthOneReview",
    "OverApproval",
    "PlanChoice",
    "PoolDay",
    "Relation",
    "RequestAttachment",
    "RequestComment",
    "RequestImport",
    "RequestLink",
    "RequestRevision",
    "RequestTemplate",
    "RequestWatch",
    "ReviewAction",
    "ReviewReport",
    "ReviewRules",
    "ReviewSchedule",
    "ReviewSnapshot",
    "RevisionUse",
    "SavedFilter",
    "Site",
    "StagePrior",
    "Study",
    "StudyBrief",
    "TeamPlan",
    "TelemetryCard",
    "TelemetrySource",
    "Vote",
]
