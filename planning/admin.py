"""Support pages: look at planning rows. Every change goes through its service, so nothing is editable here."""

from django.contrib import admin

from core.admin import ReadOnlyAdmin
from planning.models import (
    ApprovalLimit,
    ApprovalPolicy,
    ApprovalRule,
    ApprovalStep,
    Budget,
    BudgetChange,
    CapacityRequest,
    Delegation,
    LedgerEntry,
    PlanChoice,
    RequestAttachment,
    RequestComment,
    RequestLink,
    RequestRevision,
    RequestTemplate,
    Site,
    Study,
    Vote,
)


@admin.register(CapacityRequest)
class CapacityRequestAdmin(ReadOnlyAdmin):
    list_display = ["reference", "title", "team", "status", "version"]
    search_fields = ["title", "number"]
    list_select_related = ["team"]


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin):
    list_display = ["budget", "kind", "bucket", "amount", "source", "posted_at"]
    search_fields = ["source"]
    list_select_related = ["budget__team"]


admin.site.register(
    [
        ApprovalLimit, ApprovalPolicy, ApprovalRule, ApprovalStep, Budget, BudgetChange, Delegation, PlanChoice,
        RequestAttachment, RequestComment, RequestLink, RequestRevision, RequestTemplate, Site, Study, Vote,
    ],
    ReadOnlyAdmin,
)  # fmt: skip
