"""API addresses of buying and proving. Steps come from one table, as on the pages."""

from typing import Any

from django.urls import path, re_path

from procurement.api import (
    assets,
    checklists,
    clauses,
    live,
    performance,
    quote_imports,
    vendor_access,
    vendors,
)
from procurement.api import views as v

PLURALS = {
    "vendor": "vendors",
    "rfq": "rfqs",
    "quote": "quotes",
    "award": "awards",
    "order": "orders",
    "amendment": "amendments",
    "substitution": "substitutions",
    "delivery": "deliveries",
    "asset": "assets",
    "burn-in": "burn-ins",
    "evidence": "evidence",
    "acceptance": "acceptances",
    "invoice": "invoices",
    "rma": "rmas",
}
OWN_LIST = {"vendor": v.VendorList, "rfq": v.RfqList}
OWN_DETAIL = {"vendor": v.VendorDetail, "rfq": v.RfqDetail}

api_routes = [
    path("policy/", v.PolicyView.as_view(), name="api-purchasing-policy"),
    path("policy/<slug:step>/", v.PolicyStep.as_view(), name="api-purchasing-policy-step"),
    path("threads/<int:pk>/", v.ThreadView.as_view(), name="api-thread"),
    path("assets/place/", assets.AssetPlace.as_view(), name="api-asset-place"),
    path("assets/labels/", assets.AssetLabels.as_view(), name="api-asset-labels"),
    path("assets/cover/", assets.AssetCover.as_view(), name="api-asset-cover"),
    path("rmas/<int:pk>/bundle/", assets.RmaBundle.as_view(), name="api-rma-bundle"),
    path("evidence/<int:pk>/file/", assets.EvidenceDownload.as_view(), name="api-evidence-file"),
    path(
        "acceptances/<int:pk>/certificate/<slug:language>/",
        assets.CertificateDownload.as_view(),
        name="api-acceptance-certificate",
    ),
    path("assets/search/", v.AssetSearch.as_view(), name="api-asset-search"),
    path("rfqs/<int:pk>/quotes/", v.RfqQuotes.as_view(), name="api-rfq-quotes"),
    re_path(
        r"^rfqs/(?P<pk>\d+)/quote-template\.(?P<kind>csv|xlsx)$",
        quote_imports.QuoteTemplate.as_view(),
        name="api-quote-template",
    ),
    path(
        "rfqs/<int:pk>/quote-imports/",
        quote_imports.RfqQuoteImports.as_view(),
        name="api-rfq-quote-imports",
    ),
    path(
        "quote-imports/<int:pk>/",
        quote_imports.QuoteImportDetail.as_view(),
        name="api-quote-import-detail",
    ),
    path(
        "quote-imports/<int:pk>/apply/",
        quote_imports.QuoteImportApply.as_view(),
        name="api-quote-import-apply",
    ),
    path(
        "quote-imports/<int:pk>/encoding/",
        quote_imports.QuoteImportEncoding.as_view(),
        name="api-quote-import-encoding",
    ),
    path(
        "quote-imports/<int:pk>/discard/",
        quote_imports.QuoteImportDiscard.as_view(),
        name="api-quote-import-discard",
    ),
    path(
        "rfqs/<int:pk>/vendor-keys/", vendor_access.RfqVendorKeys.as_view(), name="api-vendor-keys"
    ),
    path(
        "rfqs/<int:pk>/vendor-keys/<int:vendor>/",
        vendor_access.RfqVendorKey.as_view(),
        name="api-vendor-key",
    ),
    path(
        "vendors/<int:pk>/documents/",
        vendors.VendorDocuments.as_view(),
        name="api-vendor-documents",
    ),
    path(
        "vendors/<int:pk>/documents/<int:document>/",
        vendors.VendorDocumentFile.as_view(),
        name="api-vendor-document-file",
    ),
    path(
        "vendors/<int:pk>/documents/<int:document>/retire/",
        vendors.VendorDocumentRetire.as_view(),
        name="api-vendor-document-retire",
    ),
    path("clauses/", clauses.Clauses.as_view(), name="api-clauses"),
    path("clauses/<slug:code>/", clauses.ClauseVersions.as_view(), name="api-clause-versions"),
    path("quotes/<int:pk>/changes/", v.QuoteChangesView.as_view(), name="api-quote-changes"),
    path(
        "rfqs/<int:pk>/documents/<int:document>/",
        v.RfqDocumentFile.as_view(),
        name="api-rfq-document",
    ),
    path(
        "vendor/rfq/document/",
        vendor_access.VendorRfqDocument.as_view(),
        name="api-vendor-document",
    ),
    path("vendor/rfq/", vendor_access.VendorRfq.as_view(), name="api-vendor-rfq"),
    re_path(
        r"^vendor/quote-template\.(?P<kind>csv|xlsx)$",
        vendor_access.VendorTemplate.as_view(),
        name="api-vendor-template",
    ),
    path("vendor/quote/", vendor_access.VendorQuote.as_view(), name="api-vendor-quote"),
    path(
        "vendor/quote/<int:revision>/files/<int:pk>/",
        vendor_access.VendorQuoteFile.as_view(),
        name="api-vendor-quote-file",
    ),
    path("rfqs/<int:pk>/comparison/", v.RfqComparison.as_view(), name="api-rfq-comparison"),
    path("rfqs/<int:pk>/awards/", v.RfqAwards.as_view(), name="api-rfq-awards"),
    path(
        "awards/<int:pk>/documents/<int:document>/",
        v.AwardDocumentFile.as_view(),
        name="api-award-document",
    ),
    path("orders/<int:pk>/amendments/", v.OrderAmendments.as_view(), name="api-order-amendments"),
    path(
        "orders/<int:pk>/announcements/",
        v.OrderAnnouncements.as_view(),
        name="api-order-announcements",
    ),
    path("orders/<int:pk>/receipts/", v.OrderReceipts.as_view(), name="api-order-receipts"),
    path("orders/<int:pk>/invoices/", v.OrderInvoices.as_view(), name="api-order-invoices"),
    path(
        "deliveries/<int:pk>/evidence/", v.DeliveryEvidence.as_view(), name="api-delivery-evidence"
    ),
    path(
        "deliveries/<int:pk>/performance/",
        performance.DeliveryPerformance.as_view(),
        name="api-delivery-performance",
    ),
    path(
        "acceptances/<int:pk>/performance/",
        performance.AcceptancePerformance.as_view(),
        name="api-acceptance-performance",
    ),
    path("checklists/", checklists.ShippedChecklists.as_view(), name="api-checklists"),
    path(
        "orders/<int:pk>/checklists/",
        checklists.OrderChecklists.as_view(),
        name="api-order-checklists",
    ),
    path("deliveries/<int:pk>/items/", v.DeliveryItems.as_view(), name="api-delivery-items"),
    path("failures/", live.FailuresView.as_view(), name="api-failures"),
    path("live/", live.LivePush.as_view(), name="api-live-push"),
    path("deliveries/<int:pk>/live/", live.LiveBoardView.as_view(), name="api-delivery-live"),
    path(
        "deliveries/<int:pk>/live-token/", live.LiveToken.as_view(), name="api-delivery-live-token"
    ),
    path("rmas/<int:pk>/evidence/", v.RmaEvidence.as_view(), name="api-rma-evidence"),
]
for noun, plural in PLURALS.items():
    listed: Any = OWN_LIST.get(noun) or v.list_view(noun, f"All {plural} the caller may see.")
    detail: Any = OWN_DETAIL.get(noun) or v.detail_view(noun, f"One of the {plural}.")
    api_routes += [
        path(f"{plural}/", listed.as_view(), name=f"api-{noun}-list"),
        path(f"{plural}/<int:pk>/", detail.as_view(), name=f"api-{noun}-detail"),
    ]
api_routes += [
    path(
        f"{PLURALS[step.noun]}/<int:pk>/{step.action}/",
        v.step_view(step).as_view(),
        name=f"api-{step.noun}-{step.action}",
    )
    for step in v.ALL_STEPS
]
