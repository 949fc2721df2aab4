"""API addresses of the catalogue, under /api/v1/catalog/."""

from django.urls import path

from catalog.api import facts, prices

urlpatterns = [
    path("accelerators/", facts.AcceleratorList.as_view(), name="api-accelerators"),
    path("accelerators/<slug:slug>/", facts.AcceleratorDetail.as_view(), name="api-accelerator"),
    path(
        "accelerators/<slug:slug>/corrections/",
        facts.AcceleratorCorrection.as_view(),
        name="api-accelerator-correct",
    ),
    path("models/", facts.ModelList.as_view(), name="api-models"),
    path("models/<slug:slug>/", facts.ModelDetail.as_view(), name="api-model"),
    path(
        "models/<slug:slug>/corrections/", facts.ModelCorrection.as_view(), name="api-model-correct"
    ),
    path("platforms/", facts.PlatformList.as_view(), name="api-platforms"),
    path(
        "platforms/<slug:slug>/corrections/",
        facts.PlatformCorrection.as_view(),
        name="api-platform-correct",
    ),
    path("tco-defaults/", facts.TcoList.as_view(), name="api-tco-defaults"),
    path(
        "tco-defaults/<str:key>/corrections/",
        facts.TcoCorrection.as_view(),
        name="api-tco-correct",
    ),
    path("offer-prices/", prices.OfferPriceList.as_view(), name="api-offer-prices"),
    path("leases/", prices.LeaseList.as_view(), name="api-leases"),
    path("hardware-prices/", prices.HardwarePriceList.as_view(), name="api-hardware-prices"),
    path("exchange-rates/", prices.RateList.as_view(), name="api-exchange-rates"),
    path("price-imports/", prices.PriceImportStart.as_view(), name="api-price-imports"),
    path("price-imports/<int:pk>/", prices.PriceImportDetail.as_view(), name="api-price-import"),
    path(
        "price-imports/<int:pk>/encoding/",
        prices.PriceImportEncoding.as_view(),
        name="api-price-import-encoding",
    ),
    path(
        "price-imports/<int:pk>/apply/",
        prices.PriceImportApply.as_view(),
        name="api-price-import-apply",
    ),
    path(
        "price-imports/<int:pk>/discard/",
        prices.PriceImportDiscard.as_view(),
        name="api-price-import-discard",
    ),
]
