"""Addresses of proving: deliveries to accepted cards, their returns and invoices."""

from django.urls import path

from procurement.views import assets, deliveries, invoices, rmas

pages = [
    path("deliveries/", deliveries.delivery_list, name="delivery-list"),
    path("deliveries/<int:pk>/", deliveries.delivery_detail, name="delivery-detail"),
    path("deliveries/<int:pk>/burn-in/", deliveries.delivery_burn_in, name="delivery-burn-in"),
    path("deliveries/<int:pk>/burn-in/items/", deliveries.burn_in_items, name="burn-in-items"),
    path("deliveries/<int:pk>/evidence/", deliveries.evidence_upload, name="evidence-upload"),
    path("burn-in/<int:pk>/", deliveries.run_detail, name="run-detail"),
    path("evidence/<int:pk>/", deliveries.evidence_detail, name="evidence-detail"),
    path("evidence/<int:pk>/file/", deliveries.evidence_file, name="evidence-file"),
    path("acceptances/<int:pk>/", deliveries.acceptance_detail, name="acceptance-detail"),
    path("assets/", assets.asset_list, name="asset-list"),
    path("assets/<int:pk>/", assets.asset_detail, name="asset-detail"),
    path("rmas/", rmas.rma_list, name="rma-list"),
    path("rmas/<int:pk>/", rmas.rma_detail, name="rma-detail"),
    path("rmas/<int:pk>/evidence/", rmas.rma_evidence, name="rma-evidence"),
    path("invoices/<int:pk>/", invoices.invoice_detail, name="invoice-detail"),
    path("invoices/<int:pk>/file/", invoices.invoice_file, name="invoice-file"),
]
