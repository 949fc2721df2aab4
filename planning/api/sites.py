"""API of machine rooms and of what studies take from the organisation; the same service and policy as the pages."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.http import api_user
from core.organisation import organisation
from planning.models import Site
from planning.services.purchase_tax import purchase_tax, set_purchase_tax
from planning.services.sites import save_site
from planning.services.stage import set_stage


class SiteSerializer(serializers.ModelSerializer[Site]):
    class Meta:
        model = Site
        fields = ["id", "name", *Site.FIGURES, "version"]
        read_only_fields = ["version"]
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "name": {"validators": []}
        }  # the service says what is wrong

    def get_validators(self) -> list[Any]:
        """None of its own: the service checks how figures go together."""
        return []


class SiteList(ListAPIView[Site]):
    """Every site; POST describes a new one (operations, administrators)."""

    serializer_class = SiteSerializer
    queryset = Site.objects.all()
    filter_backends = ()

    @extend_schema(request=SiteSerializer, responses={201: SiteSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        body = SiteSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        site = save_site(by=api_user(request), **body.validated_data)
        return Response(SiteSerializer(site).data, status=201)


class SiteDetail(APIView):
    """One site; PATCH changes what is given."""

    @extend_schema(responses=SiteSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(SiteSerializer(get_object_or_404(Site, pk=pk)).data)

    @extend_schema(request=SiteSerializer(partial=True), responses=SiteSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        site = get_object_or_404(Site, pk=pk)
        body = SiteSerializer(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        data = {"name": site.name, **body.validated_data}
        saved = save_site(by=api_user(request), site_id=pk, version=seen_version(request), **data)
        return Response(SiteSerializer(saved).data)


class StageSerializer(serializers.Serializer[object]):
    stage = serializers.CharField(allow_blank=True)


class PurchaseTaxSerializer(serializers.Serializer[object]):
    rate = serializers.DecimalField(max_digits=5, decimal_places=4, allow_null=True)
    rents = serializers.DecimalField(
        max_digits=5, decimal_places=4, allow_null=True, required=False
    )
    reclaimed = serializers.BooleanField()
    counted = serializers.DecimalField(
        max_digits=5, decimal_places=4, allow_null=True, read_only=True
    )
    counted_rents = serializers.DecimalField(
        max_digits=5, decimal_places=4, allow_null=True, read_only=True
    )


class PurchaseTaxView(APIView):
    """The tax on purchases and on a cloud's rents as shares of the price before it; PUT sets them (administrators,
    finance).

    `rate` null: the usual one of the country. `rents` null: as on purchases; where
    `rate` is null too, the usual one. `counted` and
    `counted_rents` are what studies take; null: none is known.
    """

    @extend_schema(responses=PurchaseTaxSerializer)
    def get(self, request: Request) -> Response:
        return Response(_purchase_tax())

    @extend_schema(request=PurchaseTaxSerializer, responses=PurchaseTaxSerializer)
    def put(self, request: Request) -> Response:
        body = PurchaseTaxSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        set_purchase_tax(by=api_user(request), **body.validated_data)
        return Response(_purchase_tax())


def _purchase_tax() -> dict[str, Any]:
    org, counted = organisation(), purchase_tax()
    return PurchaseTaxSerializer(
        {
            "rate": org.purchase_tax_rate,
            "reclaimed": org.purchase_tax_reclaimed,
            "rents": org.rent_tax_rate,
            "counted": None if counted is None else Decimal(str(counted.rate)),
            "counted_rents": None if counted is None else Decimal(str(counted.rent_rate)),
        }
    ).data


class StageView(APIView):
    """The stage of the organisation, which advice in studies follows; PUT sets it."""

    @extend_schema(responses=StageSerializer)
    def get(self, request: Request) -> Response:
        return Response({"stage": organisation().stage})

    @extend_schema(request=StageSerializer, responses=StageSerializer)
    def put(self, request: Request) -> Response:
        body = StageSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        found = set_stage(stage=body.validated_data["stage"], by=api_user(request))
        return Response({"stage": found.stage})
