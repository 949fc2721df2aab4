"""Comments, watching and papers of a request over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent
from core.files import download
from core.http import api_user
from planning.api.requests import checked, visible
from planning.models import RequestAttachment, RequestComment
from planning.services import discussion
from planning.services.discussion import readable_file


class CommentSerializer(serializers.ModelSerializer[RequestComment]):
    author = serializers.EmailField(source="author.email", read_only=True)
    mentions: serializers.SlugRelatedField[Any] = serializers.SlugRelatedField(
        slug_field="email", many=True, read_only=True
    )

    class Meta:
        model = RequestComment
        fields = ["id", "author", "text", "mentions", "created_at"]


class CommentInput(serializers.Serializer[Any]):
    text = serializers.CharField(allow_blank=True)


class AttachmentSerializer(serializers.ModelSerializer[RequestAttachment]):
    name = serializers.CharField(source="file.name", read_only=True)
    size = serializers.IntegerField(source="file.size", read_only=True)
    sha256 = serializers.CharField(source="file.sha256", read_only=True)
    content_type = serializers.CharField(source="file.content_type", read_only=True)
    added_by = serializers.EmailField(source="added_by.email", read_only=True)

    class Meta:
        model = RequestAttachment
        fields = ["id", "name", "size", "sha256", "content_type", "note", "added_by", "added_at"]


class AttachmentInput(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)


class WatchSerializer(serializers.Serializer[Any]):
    watching = serializers.BooleanField()


class CommentList(ListAPIView[RequestComment]):
    """What was said about a request, oldest first; POST adds a comment. `@handle` tells a person."""

    serializer_class = CommentSerializer
    queryset = RequestComment.objects.none()
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[RequestComment]:
        found = visible(self.request, self.kwargs["pk"])
        return found.comments.select_related("author").prefetch_related("mentions")

    @extend_schema(request=CommentInput, responses={201: CommentSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(CommentInput(data=request.data))
        row = discussion.comment(request_id=pk, text=data["text"], by=api_user(request))
        return Response(CommentSerializer(row).data, status=201)


class Watch(APIView):
    """Whether the caller is told of changes; POST begins it, DELETE ends it."""

    @extend_schema(responses=WatchSerializer)
    def get(self, request: Request, pk: int) -> Response:
        watches = visible(request, pk).watches.filter(user=api_user(request))
        return Response({"watching": watches.exists()})

    @extend_schema(request=None, responses=WatchSerializer)
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        discussion.watch(request_id=pk, by=api_user(request))
        return Response({"watching": True})

    @extend_schema(responses=WatchSerializer)
    def delete(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        discussion.unwatch(request_id=pk, by=api_user(request))
        return Response({"watching": False})


class FileList(ListAPIView[RequestAttachment]):
    """Papers of a request; POST (multipart) adds one."""

    serializer_class = AttachmentSerializer
    queryset = RequestAttachment.objects.none()
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[RequestAttachment]:
        found = visible(self.request, self.kwargs["pk"])
        return found.attachments.filter(removed_at=None).select_related("file", "added_by")

    @extend_schema(request=AttachmentInput, responses={201: AttachmentSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(AttachmentInput(data=request.data))
        row = discussion.attach(
            request_id=pk, upload=data["file"], note=data["note"], by=api_user(request)
        )
        return Response(AttachmentSerializer(row).data, status=201)


class FileRead(APIView):
    """The content of a paper; DELETE takes it away (who brought it, while the request is open)."""

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int, file: int) -> HttpResponseBase:
        row = readable_file(
            request_id=pk, attachment_id=file, by=api_user(request), path=request.path
        )
        if row is None:
            raise Http404
        return download(row.file)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int, file: int) -> Response:
        get_object_or_404(visible(request, pk).attachments, pk=file)
        discussion.remove_attachment(attachment_id=file, by=api_user(request))
        return Response(status=204)
