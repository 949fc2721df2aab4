"""Addresses of machine rooms, the portfolio and the organisation's stage."""

from django.urls import path

from planning.views import organisation, portfolio, sites

pages = [
    path("portfolio/", portfolio.portfolio_page, name="portfolio"),
    path("portfolio/placement/", portfolio.placement_page, name="placement"),
    path("organisation/stage/", organisation.organisation_stage, name="organisation-stage"),
    path("organisation/purchase-tax/", organisation.purchase_tax_page, name="purchase-tax"),
    path("sites/", sites.site_list, name="site-list"),
    path("sites/new/", sites.site_create, name="site-create"),
    path("sites/<int:pk>/", sites.site_detail, name="site-detail"),
]
