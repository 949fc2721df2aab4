"""Addresses of this app in the API."""

from django.urls import path, re_path

from planning.api import (
    approvals,
    budgets,
    estimates,
    requests,
    reviews,
    studies,
)
from planning.routes import calibrating_api, capacity_api, housing_api, requesting_api

urlpatterns = [
    path("estimate/", estimates.EstimateView.as_view(), name="api-estimate"),
    path("waiting/", approvals.WaitingList.as_view(), name="api-waiting"),
    path("requests/", requests.RequestList.as_view(), name="api-requests"),
    path("requests/<int:pk>/", requests.RequestDetail.as_view(), name="api-request"),
    path(
        "requests/<int:pk>/revisions/",
        requests.RevisionList.as_view(),
        name="api-request-revisions",
    ),
    path("requests/<int:pk>/copy/", requests.RequestCopy.as_view(), name="api-request-copy"),
    path("requests/<int:pk>/choose-plan/", requests.RequestPlan.as_view(), name="api-request-plan"),
    path("requests/<int:pk>/fulfil/", requests.RequestFulfil.as_view(), name="api-request-fulfil"),
    path("requests/<int:pk>/actuals/", requests.RequestActual.as_view(), name="api-request-actual"),
    re_path(
        rf"^requests/(?P<pk>\d+)/(?P<step>{'|'.join(requests.STEPS)})/$",
        requests.RequestStep.as_view(),
        name="api-request-step",
    ),
    path("requests/<int:pk>/studies/", studies.StudyList.as_view(), name="api-request-studies"),
    path("studies/<int:pk>/", studies.StudyDetail.as_view(), name="api-study"),
    path("studies/<int:pk>/choose/", studies.StudyChoose.as_view(), name="api-study-choose"),
    path("studies/<int:pk>/cancel/", studies.StudyCancel.as_view(), name="api-study-cancel"),
    path("studies/<int:pk>/publish/", studies.StudyPublish.as_view(), name="api-study-publish"),
    path("studies/<int:pk>/what-if/", studies.StudyWhatIf.as_view(), name="api-study-what-if"),
    path(
        "studies/<int:pk>/compare/<int:other>/",
        studies.StudyCompare.as_view(),
        name="api-study-compare",
    ),
    path("studies/<int:pk>/briefs/", studies.StudyBriefs.as_view(), name="api-study-briefs"),
    path(
        "studies/<int:pk>/briefs/<str:language>/file/",
        studies.StudyBriefFile.as_view(),
        name="api-study-brief-file",
    ),
    path("approvals/", approvals.ApprovalList.as_view(), name="api-approvals"),
    path(
        "approvals/<int:pk>/decide/", approvals.ApprovalDecide.as_view(), name="api-approval-decide"
    ),
    path("delegations/", approvals.DelegationList.as_view(), name="api-delegations"),
    path(
        "delegations/<int:pk>/revoke/",
        approvals.DelegationRevoke.as_view(),
        name="api-delegation-revoke",
    ),
    path("approval-limits/", approvals.LimitList.as_view(), name="api-limits"),
    path("policies/edit/", approvals.PolicyEdit.as_view(), name="api-policy-edit"),
    path("policies/<int:pk>/<slug:step>/", approvals.PolicyStep.as_view(), name="api-policy-step"),
    path("policies/", approvals.PolicyList.as_view(), name="api-policies"),
    path("budgets/", budgets.BudgetList.as_view(), name="api-budgets"),
    path("budgets/revalue/", budgets.BudgetsRevalue.as_view(), name="api-budgets-revalue"),
    path("budgets/<int:pk>/", budgets.BudgetDetail.as_view(), name="api-budget"),
    path("budgets/<int:pk>/entries/", budgets.EntryList.as_view(), name="api-budget-entries"),
    path("budgets/<int:pk>/allot/", budgets.BudgetAllot.as_view(), name="api-budget-allot"),
    path(
        "budgets/<int:pk>/transfer/", budgets.BudgetTransfer.as_view(), name="api-budget-transfer"
    ),
    path("budgets/<int:pk>/close/", budgets.BudgetClose.as_view(), name="api-budget-close"),
    path(
        "budget-changes/<int:pk>/confirm/",
        budgets.ChangeConfirm.as_view(),
        name="api-change-confirm",
    ),
    path(
        "budget-changes/<int:pk>/decline/",
        budgets.ChangeDecline.as_view(),
        name="api-change-decline",
    ),
    path("ledger/<int:pk>/reverse/", budgets.EntryReverse.as_view(), name="api-entry-reverse"),
    path("reviews/", reviews.ReviewList.as_view(), name="api-reviews"),
    path("reviews/<int:pk>/", reviews.ReviewDetail.as_view(), name="api-review"),
    path(
        "reviews/<int:pk>/rows/<slug:name>/", reviews.ReviewRows.as_view(), name="api-review-rows"
    ),
    path("reviews/<int:pk>/reports/", reviews.ReviewReports.as_view(), name="api-review-reports"),
    path("reviews/<int:pk>/open/", reviews.ReviewOpen.as_view(), name="api-review-open"),
    path("reviews/<int:pk>/close/", reviews.ReviewClose.as_view(), name="api-review-close"),
    path(
        "reviews/<int:pk>/reports/<int:report_pk>/file/",
        reviews.ReviewReportFile.as_view(),
        name="api-review-report-file",
    ),
    *calibrating_api.api,
    *housing_api.api,
    *requesting_api.api,
    *capacity_api.api,
]
