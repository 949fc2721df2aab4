"""Addresses of buying: vendors to orders, and a request's thread."""

from django.urls import path, re_path

from procurement.views import (
    clauses,
    common,
    orders,
    purchasing,
    quote_imports,
    quotes,
    rfqs,
    threads,
    vendors,
)

pages = [
    path("steps/<slug:noun>/<int:pk>/<slug:action>/", common.take_step, name="procurement-step"),
    path("threads/<int:pk>/", threads.thread, name="request-thread"),
    path("vendors/", vendors.vendor_list, name="vendor-list"),
    path("vendors/new/", vendors.vendor_create, name="vendor-create"),
    path("vendors/<int:pk>/", vendors.vendor_detail, name="vendor-detail"),
    path("vendors/<int:pk>/edit/", vendors.vendor_edit, name="vendor-edit"),
    path("vendors/<int:pk>/documents/", vendors.document_add, name="vendor-document-add"),
    path(
        "vendors/<int:pk>/documents/<int:document>/",
        vendors.document_file,
        name="vendor-document-file",
    ),
    path(
        "vendors/<int:pk>/documents/<int:document>/retire/",
        vendors.document_retire,
        name="vendor-document-retire",
    ),
    path("policy/", purchasing.policy_page, name="purchasing-policy"),
    path("policy/<slug:step>/", purchasing.policy_step, name="purchasing-policy-step"),
    path("rfqs/", rfqs.rfq_list, name="rfq-list"),
    path("rfqs/new/", rfqs.rfq_create, name="rfq-create"),
    path("rfqs/<int:pk>/", rfqs.rfq_detail, name="rfq-detail"),
    path("clauses/", clauses.clause_list, name="clause-list"),
    path("clauses/new/", clauses.clause_create, name="clause-create"),
    path("clauses/<slug:code>/", clauses.clause_detail, name="clause-detail"),
    path("rfqs/<int:pk>/documents/<int:document>/", rfqs.rfq_document, name="rfq-document"),
    path("rfqs/<int:pk>/edit/", rfqs.rfq_edit, name="rfq-edit"),
    path("rfqs/<int:pk>/requirements/", rfqs.rfq_requirements, name="rfq-requirements"),
    path("rfqs/<int:pk>/compare/", rfqs.rfq_compare, name="rfq-compare"),
    path("rfqs/<int:pk>/split/", rfqs.rfq_split, name="rfq-split"),
    path("rfqs/<int:pk>/quotes/new/", quotes.quote_create, name="quote-create"),
    re_path(
        r"^rfqs/(?P<pk>\d+)/quote-template\.(?P<kind>csv|xlsx)$",
        quote_imports.quote_table,
        name="quote-template",
    ),
    path("rfqs/<int:pk>/vendor-key/", rfqs.vendor_key, name="vendor-key"),
    path("rfqs/<int:pk>/quotes/import/", quote_imports.quote_import, name="quote-import"),
    path("quote-imports/<int:pk>/", quote_imports.import_detail, name="quote-import-detail"),
    path(
        "quote-imports/<int:pk>/encoding/",
        quote_imports.import_encoding,
        name="quote-import-encoding",
    ),
    path("quote-imports/<int:pk>/apply/", quote_imports.import_apply, name="quote-import-apply"),
    path("quote-imports/<int:pk>/again/", quote_imports.import_again, name="quote-import-again"),
    path(
        "quote-imports/<int:pk>/discard/", quote_imports.import_discard, name="quote-import-discard"
    ),
    path("quotes/<int:pk>/", quotes.quote_detail, name="quote-detail"),
    path("quotes/<int:pk>/files/<int:attachment>/", quotes.quote_file, name="quote-file"),
    path("awards/<int:pk>/documents/<int:document>/", rfqs.award_document, name="award-document"),
    path("orders/", orders.order_list, name="order-list"),
    path("orders/<int:pk>/", orders.order_detail, name="order-detail"),
    path("orders/<int:pk>/amend/", orders.order_amend, name="order-amend"),
    path("orders/<int:pk>/document/", orders.order_document, name="order-document"),
]
