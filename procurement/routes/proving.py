"""Addresses of proving: deliveries to accepted cards, their returns and invoices."""

from django.urls import path, re_path

from procurement.views import (
    acceptance,
    assets,
    burn_in,
    checklists,
    deliveries,
    evidence,
    invoices,
    live,
    rmas,
)

pages = [
    path("orders/<int:pk>/checklists/", checklists.order_checklists, name="order-checklists"),
    path("orders/<int:pk>/announce/", deliveries.order_announce, name="order-announce"),
    path("orders/<int:pk>/receive/", deliveries.order_receive, name="order-receive"),
    path("orders/<int:pk>/receive/check/", deliveries.receive_check, name="receive-check"),
    path("orders/<int:pk>/invoices/new/", invoices.order_invoice, name="order-invoice"),
    path("deliveries/", deliveries.delivery_list, name="delivery-list"),
    path("deliveries/<int:pk>/", deliveries.delivery_detail, name="delivery-detail"),
    path("deliveries/<int:pk>/burn-in/", burn_in.delivery_burn_in, name="delivery-burn-in"),
    path("deliveries/<int:pk>/burn-in/start/", burn_in.burn_in_start, name="burn-in-start"),
    path("deliveries/<int:pk>/burn-in/items/", burn_in.burn_in_items, name="burn-in-items"),
    path("deliveries/<int:pk>/burn-in/<slug:action>/", burn_in.burn_in_bulk, name="burn-in-bulk"),
    path("deliveries/<int:pk>/live/", live.delivery_live, name="delivery-live"),
    path("deliveries/<int:pk>/live/token/", live.feed_token, name="feed-token"),
    path("deliveries/<int:pk>/evidence/", evidence.evidence_upload, name="evidence-upload"),
    path(
        "deliveries/<int:pk>/acceptance/", acceptance.acceptance_propose, name="acceptance-propose"
    ),
    path("burn-in/<int:pk>/", burn_in.run_detail, name="run-detail"),
    path("evidence/<int:pk>/", evidence.evidence_detail, name="evidence-detail"),
    path("evidence/<int:pk>/file/", evidence.evidence_file, name="evidence-file"),
    path("acceptances/<int:pk>/", acceptance.acceptance_detail, name="acceptance-detail"),
    path(
        "acceptances/<int:pk>/certificate/<slug:language>/",
        acceptance.certificate_file,
        name="certificate-file",
    ),
    path("assets/", assets.asset_list, name="asset-list"),
    path("assets/failures/", assets.asset_failures, name="asset-failures"),
    path("assets/labels.pdf", assets.asset_labels, name="asset-labels"),
    path("assets/search/", assets.asset_search, name="asset-search"),
    path("assets/place/", assets.asset_place, name="asset-place"),
    re_path(r"^assets/export\.(?P<kind>csv|xlsx)$", assets.asset_export, name="asset-export"),
    path("assets/<int:pk>/", assets.asset_detail, name="asset-detail"),
    path("rmas/", rmas.rma_list, name="rma-list"),
    path("rmas/<int:pk>/", rmas.rma_detail, name="rma-detail"),
    path("rmas/<int:pk>/evidence/", rmas.rma_evidence, name="rma-evidence"),
    path("rmas/<int:pk>/bundle/", rmas.rma_bundle, name="rma-bundle"),
    path("invoices/", invoices.invoice_list, name="invoice-list"),
    path("invoices/<int:pk>/", invoices.invoice_detail, name="invoice-detail"),
    path("invoices/<int:pk>/file/", invoices.invoice_file, name="invoice-file"),
]
