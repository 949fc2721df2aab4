"""The first page of the API: what collections there are, and where the schema is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver, reverse
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


def _addresses(patterns: Sequence[Any], prefix: str) -> Iterator[str]:
    """Every address below that takes no argument and that a person's log-in or key can read."""
    for pattern in patterns:
        address = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from _addresses(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern) and not set("<(^") & set(address):
            view = getattr(pattern.callback, "view_class", None) or getattr(
                pattern.callback, "cls", None
            )
            reads = hasattr(view, "get") or "get" in getattr(pattern.callback, "actions", {})
            if reads and getattr(view, "for_people", True):
                yield address


class ApiIndex(APIView):
    """Where things are."""

    @extend_schema(
        responses=inline_serializer(
            "ApiIndex",
            {
                "schema": serializers.URLField(),
                "collections": serializers.DictField(child=serializers.URLField()),
            },
        )
    )
    def get(self, request: Request) -> Response:
        root = reverse("api-index")
        found = sorted(set(_addresses(get_resolver("config.api_urls").url_patterns, root)) - {root})
        return Response(
            {
                "schema": request.build_absolute_uri(reverse("api-schema")),
                "collections": {
                    address.removeprefix(root).strip("/"): request.build_absolute_uri(address)
                    for address in found
                },
            }
        )
