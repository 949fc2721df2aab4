"""The hourly load of a request over the API: the same service and policy as the page."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import seen_version
from core.http import api_user
from planning.api.requests import checked, visible
from planning.services.load_series import remove_load_series, set_load_series
from planning.study.load_series import FIELD


class LoadSeriesInput(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    zone = serializers.CharField(required=False, allow_blank=True, default="", max_length=64)
    encoding = serializers.CharField(required=False, allow_blank=True, default="", max_length=20)


class LoadSeriesOutput(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    zone = serializers.CharField(allow_blank=True)
    unit = serializers.CharField(allow_blank=True)
    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # the field's name
    values = serializers.ListField(child=serializers.FloatField())


class LoadSeriesView(APIView):
    """Hours of load of an online service.

    PUT reads a CSV (time, value, perhaps unit; `zone` for times without an offset) into a draft, DELETE goes back to
    the usual week. In the workload of a request it is `load_series`.
    """

    parser_classes = (MultiPartParser,)

    @extend_schema(responses={200: LoadSeriesOutput, 204: None})
    def get(self, request: Request, pk: int) -> Response:
        series = visible(request, pk).current.workload.get(FIELD)
        return Response(status=204) if series is None else Response(series)

    @extend_schema(request={"multipart/form-data": LoadSeriesInput}, responses=LoadSeriesOutput)
    def put(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(LoadSeriesInput(data=request.data))
        upload = data.pop("file")
        found = set_load_series(
            request_id=pk, content=upload.read(), name=upload.name, by=api_user(request),
            version=seen_version(request), **data,
        )  # fmt: skip
        return Response(found.current.workload[FIELD], headers={"ETag": f'"{found.version}"'})

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        remove_load_series(request_id=pk, by=api_user(request), version=seen_version(request))
        return Response(status=204)
