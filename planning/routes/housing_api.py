"""Addresses of machine rooms, the portfolio and the organisation's stage in the API."""

from django.urls import path

from planning.api import portfolio, sites

api = [
    path("portfolio/", portfolio.PortfolioView.as_view(), name="api-portfolio"),
    path("portfolio/placement/", portfolio.PlacementView.as_view(), name="api-placement"),
    path("organisation/stage/", sites.StageView.as_view(), name="api-organisation-stage"),
    path("organisation/purchase-tax/", sites.PurchaseTaxView.as_view(), name="api-purchase-tax"),
    path("sites/", sites.SiteList.as_view(), name="api-sites"),
    path("sites/<int:pk>/", sites.SiteDetail.as_view(), name="api-site"),
]
