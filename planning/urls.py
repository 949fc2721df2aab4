"""Addresses of this app's pages."""

from django.urls import path, re_path

from planning.views import approvals, budgets, estimates, requests, reviews, studies

urlpatterns = [
    path("estimate/", estimates.quick_estimate, name="quick-estimate"),
    path("requests/estimate/", estimates.request_estimate, name="request-estimate"),
    path("requests/", requests.request_list, name="request-list"),
    path("requests/new/", requests.request_kinds, name="request-kinds"),
    path("requests/new/<slug:kind>/", requests.request_create, name="request-create"),
    path("requests/check/<slug:kind>/", requests.request_check, name="request-check"),
    path("requests/<int:pk>/", requests.request_detail, name="request-detail"),
    path("requests/<int:pk>/edit/", requests.request_edit, name="request-edit"),
    path("requests/<int:pk>/copy/", requests.request_copy, name="request-copy"),
    path("requests/<int:pk>/choose-plan/", requests.request_plan, name="request-plan"),
    path("requests/<int:pk>/study/", studies.study_start, name="study-start"),
    path("studies/<int:pk>/", studies.study_detail, name="study-detail"),
    path("studies/<int:pk>/choose/", studies.study_choose, name="study-choose"),
    path("studies/<int:pk>/cancel/", studies.study_cancel, name="study-cancel"),
    re_path(
        rf"^requests/(?P<pk>\d+)/(?P<action>{'|'.join(requests.STEPS)})/$",
        requests.request_step,
        name="request-step",
    ),
    path("approvals/", approvals.approval_list, name="approval-list"),
    path("approvals/<int:pk>/decide/", approvals.approval_decide, name="approval-decide"),
    path("approvals/stand-ins/", approvals.delegation_list, name="delegation-list"),
    path(
        "approvals/stand-ins/<int:pk>/revoke/",
        approvals.delegation_revoke,
        name="delegation-revoke",
    ),
    path("approvals/rules/", approvals.policy_list, name="policy-list"),
    path("approvals/limits/", approvals.limit_set, name="limit-set"),
    path("budgets/", budgets.budget_list, name="budget-list"),
    path("budgets/new/", budgets.budget_open, name="budget-open"),
    path("budgets/<int:pk>/", budgets.budget_detail, name="budget-detail"),
    path("budgets/<int:pk>/allot/", budgets.budget_allot, name="budget-allot"),
    path("budgets/<int:pk>/transfer/", budgets.budget_transfer, name="budget-transfer"),
    path("budgets/<int:pk>/close/", budgets.budget_close, name="budget-close"),
    path("budgets/changes/<int:pk>/confirm/", budgets.change_confirm, name="change-confirm"),
    path("budgets/changes/<int:pk>/decline/", budgets.change_decline, name="change-decline"),
    path("budgets/ledger/<int:pk>/reverse/", budgets.entry_reverse, name="entry-reverse"),
    path("reviews/", reviews.review_list, name="review-list"),
    path("reviews/<int:pk>/", reviews.review_detail, name="review-detail"),
    path("reviews/<int:pk>/open/", reviews.review_open, name="review-open"),
    path("reviews/<int:pk>/close/", reviews.review_close, name="review-close"),
    path("reviews/<int:pk>/reports/<int:report_pk>/", reviews.review_report, name="review-report"),
    path(
        "reviews/<int:pk>/reports/<int:report_pk>/retry/",
        reviews.review_report_retry,
        name="review-report-retry",
    ),
]
