"""API of accelerators, models, platforms and cost defaults: read by everyone, corrected by those who may."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from catalog import filters, selectors
from catalog.api import serializers
from catalog.models import (
    Accelerator,
    AcceleratorSpec,
    ArchitectureSpec,
    ModelArchitecture,
    ServerPlatform,
    TcoDefault,
)
from catalog.services.revisions import ACCELERATOR, ARCHITECTURE, PLATFORM, TCO, Subject, correct
from core.drf import idempotent
from core.http import api_user


class AcceleratorList(ListAPIView[Accelerator]):
    """Accelerators with their current figures."""

    serializer_class = serializers.AcceleratorSerializer
    filterset_class = filters.AcceleratorFilter
    queryset = Accelerator.objects.none()

    def get_queryset(self) -> QuerySet[Accelerator]:
        return selectors.accelerators()


class AcceleratorDetail(RetrieveAPIView[Accelerator]):
    """One accelerator with every revision of its figures."""

    serializer_class = serializers.AcceleratorDetailSerializer
    lookup_field = "slug"
    queryset = Accelerator.objects.select_related("current").prefetch_related(
        Prefetch("specs", AcceleratorSpec.objects.order_by("-number"))
    )


class ModelList(ListAPIView[ModelArchitecture]):
    """Models with their current shape."""

    serializer_class = serializers.ModelSerializer
    filterset_class = filters.ModelFilter
    queryset = ModelArchitecture.objects.none()

    def get_queryset(self) -> QuerySet[ModelArchitecture]:
        return selectors.architectures().select_related("current__architecture")


class ModelDetail(RetrieveAPIView[ModelArchitecture]):
    """One model with every revision of its shape."""

    serializer_class = serializers.ModelDetailSerializer
    lookup_field = "slug"
    queryset = ModelArchitecture.objects.select_related("current__architecture").prefetch_related(
        Prefetch("specs", ArchitectureSpec.objects.order_by("-number"))
    )


class PlatformList(ListAPIView[ServerPlatform]):
    """Server platforms with their current figures."""

    serializer_class = serializers.PlatformSerializer
    filterset_class = filters.PlatformFilter
    queryset = ServerPlatform.objects.none()

    def get_queryset(self) -> QuerySet[ServerPlatform]:
        return selectors.platforms()


class TcoList(ListAPIView[TcoDefault]):
    """Defaults of the cost of ownership: current and shipped values."""

    serializer_class = serializers.TcoSerializer
    filterset_class = filters.TcoFilter
    queryset = TcoDefault.objects.none()

    def get_queryset(self) -> QuerySet[TcoDefault]:
        return selectors.tco_defaults()


class _CorrectionView(APIView):
    """Adds a correction; the earlier revisions stay."""

    subject: Subject
    key: str
    output: type[BaseSerializer[Any]]

    def add(self, request: Request, value: str) -> Response:
        of = get_object_or_404(self.subject.model, **{self.key: value})
        given = serializers.CorrectionInput(data=request.data)
        given.is_valid(raise_exception=True)
        row = correct(self.subject, pk=of.pk, by=api_user(request), **given.validated_data)
        return Response(self.output(row).data, status=201)


class AcceleratorCorrection(_CorrectionView):
    """State other figures of an accelerator, with reason and source."""

    subject, key, output = ACCELERATOR, "slug", serializers.AcceleratorSpecSerializer

    @extend_schema(
        request=serializers.CorrectionInput,
        responses={201: serializers.AcceleratorSpecSerializer},
    )
    @idempotent
    def post(self, request: Request, slug: str) -> Response:
        return self.add(request, slug)


class ModelCorrection(_CorrectionView):
    """State another shape of a model, with reason and source."""

    subject, key, output = ARCHITECTURE, "slug", serializers.ArchitectureSpecSerializer

    @extend_schema(
        request=serializers.CorrectionInput, responses={201: serializers.ArchitectureSpecSerializer}
    )
    @idempotent
    def post(self, request: Request, slug: str) -> Response:
        return self.add(request, slug)


class PlatformCorrection(_CorrectionView):
    """State other figures of a server platform, with reason and source."""

    subject, key, output = PLATFORM, "slug", serializers.PlatformSpecSerializer

    @extend_schema(
        request=serializers.CorrectionInput, responses={201: serializers.PlatformSpecSerializer}
    )
    @idempotent
    def post(self, request: Request, slug: str) -> Response:
        return self.add(request, slug)


class TcoCorrection(_CorrectionView):
    """Replace a cost default by the organisation's own, with reason and source."""

    subject, key, output = TCO, "key", serializers.TcoValueSerializer

    @extend_schema(
        request=serializers.CorrectionInput, responses={201: serializers.TcoValueSerializer}
    )
    @idempotent
    def post(self, request: Request, key: str) -> Response:
        return self.add(request, key)
