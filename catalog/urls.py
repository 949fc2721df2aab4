"""Pages of the catalogue, under /catalog/."""

from django.urls import path

from catalog.views import changes, compare, details, lists

urlpatterns = [
    path("", lists.home, name="catalog-home"),
    path("accelerators/", lists.accelerator_list, name="accelerator-list"),
    path("accelerators/compare/", compare.accelerator_compare, name="accelerator-compare"),
    path("accelerators/<slug:slug>/", details.accelerator_detail, name="accelerator-detail"),
    path(
        "accelerators/<slug:slug>/correct/", changes.accelerator_correct, name="accelerator-correct"
    ),
    path("models/", lists.model_list, name="model-list"),
    path("models/<slug:slug>/", details.model_detail, name="model-detail"),
    path("models/<slug:slug>/correct/", changes.model_correct, name="model-correct"),
    path("offers/", lists.offer_list, name="offer-list"),
    path("hardware-prices/", lists.hardware_price_list, name="hardware-price-list"),
    path("leases/", lists.lease_list, name="lease-list"),
    path("leases/add/", changes.lease_add, name="lease-add"),
    path("platforms/", lists.platform_list, name="platform-list"),
    path("platforms/<slug:slug>/", details.platform_detail, name="platform-detail"),
    path("platforms/<slug:slug>/correct/", changes.platform_correct, name="platform-correct"),
    path("cost-defaults/", lists.tco_list, name="tco-list"),
    path("cost-defaults/<int:pk>/", details.tco_detail, name="tco-detail"),
    path("cost-defaults/<int:pk>/correct/", changes.tco_correct, name="tco-correct"),
    path("exchange-rates/", lists.rate_list, name="rate-list"),
    path("exchange-rates/add/", changes.rate_add, name="rate-add"),
    path("prices/import/", changes.price_import, name="price-import"),
    path("prices/template/<str:target>.csv", changes.price_template, name="price-template"),
    path("prices/import/<int:pk>/", changes.price_import_detail, name="price-import-detail"),
    path(
        "prices/import/<int:pk>/encoding/",
        changes.price_import_encoding,
        name="price-import-encoding",
    ),
    path("prices/import/<int:pk>/apply/", changes.price_import_apply, name="price-import-apply"),
    path(
        "prices/import/<int:pk>/discard/",
        changes.price_import_discard,
        name="price-import-discard",
    ),
]
