"""What a vendor may do with its key (`Authorization: Vendor KEY`): its RFQ's public part, and its own quote.

These addresses take no other credential, and the key opens no other address.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiTypes,
    extend_schema,
    extend_schema_field,
)
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, ParseError
from rest_framework.parsers import MultiPartParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from core.drf import StrictJSONParser, idempotent
from core.exports import export_response
from core.files import download
from core.http import api_user
from procurement.api.serializers import (
    CriterionSerializer,
    Named,
    OfferInput,
    QuoteLineSerializer,
    RequirementSerializer,
    RfqClauseSerializer,
    TotalsSerializer,
    WarrantySerializer,
    met_criteria,
    totals,
)
from procurement.api.views import checked, visible
from procurement.models import Quote, Rfq, VendorToken
from procurement.quote_template import quote_template
from procurement.services import vendor_access


class VendorKey(BaseAuthentication):
    """`Authorization: Vendor KEY`. A session or a person's token counts for nothing here."""

    def authenticate(self, request: Request) -> tuple[Any, VendorToken]:
        word, _, text = request.headers.get("Authorization", "").partition(" ")
        token = vendor_access.token_of(text.strip()) if word == "Vendor" else None
        if token is None:
            raise AuthenticationFailed(gettext("This is no vendor's key"))
        vendor_access.note_use(token)
        return None, token

    def authenticate_header(self, request: Request) -> str:
        return "Vendor"


class HasKey(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.auth, VendorToken)


class KeyThrottle(SimpleRateThrottle):
    """So many calls of one key."""

    scope = "user"

    def get_cache_key(self, request: Request, view: Any) -> str:
        return f"throttle_vendor_key{request.auth.pk}"


class GuessThrottle(SimpleRateThrottle):
    """So many wrong keys of one address; asked before any key is looked at. Calls with a right one are not counted."""

    rate = "30/min"

    def get_cache_key(self, request: Request, view: Any) -> str:
        return f"throttle_vendor_guess_{self.get_ident(request)}"

    def throttle_success(self) -> bool:
        return True

    def count_wrong(self) -> None:
        super().throttle_success()


class VendorView(APIView):
    for_people = False  # not in the index of the API: a vendor's key opens it, no person's log-in
    authentication_classes = [VendorKey]
    permission_classes = [HasKey]
    throttle_classes = [KeyThrottle]
    parser_classes = [StrictJSONParser, MultiPartParser]

    def perform_authentication(self, request: Request) -> None:
        guesses = GuessThrottle()
        if not guesses.allow_request(request, self):
            self.throttled(request, guesses.wait() or 0.0)
        try:
            super().perform_authentication(request)
        except AuthenticationFailed:
            if request.headers.get("Authorization"):
                guesses.count_wrong()
            raise

    @property
    def sender(self) -> str:
        """Whose `Idempotency-Key` it is: the invited vendor's, whichever key it holds."""
        return f"vendor:{self.token.invitation_id}"

    @property
    def token(self) -> VendorToken:
        """The key that the request bears; HasKey lets no request without one in."""
        token: VendorToken = self.request.auth  # type: ignore[assignment]
        return token


class AskedSerializer(serializers.Serializer[Any]):
    position = serializers.IntegerField()
    accelerator = serializers.CharField(source="accelerator_slug")
    accelerators = serializers.IntegerField()
    description = serializers.CharField()


class PublicRfqSerializer(serializers.ModelSerializer[Rfq]):
    """What every invited vendor is told, the same to all: no requests, teams, people, invited vendors or counts."""

    lines = AskedSerializer(many=True, read_only=True)
    criteria = CriterionSerializer(many=True, read_only=True)
    requirements = RequirementSerializer(many=True, read_only=True)
    clauses = RfqClauseSerializer(many=True, read_only=True)

    class Meta:
        model = Rfq
        fields = [
            "number", "title", "sealed", "deadline", "deadline_zone", "deliver_by", "warranty_months",
            "warranty_start", "terms", "criteria_hash", "lines", "criteria",
            "requirements", "clauses",
        ]  # fmt: skip


class OwnFileSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField(source="file.name")
    sha256 = serializers.CharField(source="file.sha256")


class OwnQuoteSerializer(serializers.ModelSerializer[Quote]):
    """The vendor's own quote, as it was received, with the hash that is its receipt."""

    late = serializers.SerializerMethodField(
        help_text="It came after the deadline and is not scored"
    )
    state = serializers.SerializerMethodField(help_text="standing, late, superseded or withdrawn")
    lines = QuoteLineSerializer(many=True, read_only=True)
    warranty = WarrantySerializer(read_only=True)
    criteria = serializers.SerializerMethodField(help_text="Each criterion with the answer")
    totals = serializers.SerializerMethodField()
    files = OwnFileSerializer(source="attachments", many=True, read_only=True)

    class Meta:
        model = Quote
        fields = [
            "revision", "state", "late", "received_at", "content_hash", "reference", "currency", "tax_mode",
            "valid_until", "lead_time_days", "partial_delivery", "incoterm", "payment_terms", "notes",
            "lines", "warranty", "criteria", "totals", "files",
        ]  # fmt: skip

    @extend_schema_field(bool)
    def get_late(self, quote: Quote) -> bool:
        return quote.status == Quote.Status.LATE

    @extend_schema_field(serializers.DictField())
    def get_criteria(self, quote: Quote) -> dict[str, Any]:
        return met_criteria(self, quote)

    @extend_schema_field(str)
    def get_state(self, quote: Quote) -> str:
        """Never how it fared: that is told by letter."""
        told = ("late", "superseded", "withdrawn")
        return quote.status if quote.status in told else "standing"

    @extend_schema_field(TotalsSerializer)
    def get_totals(self, quote: Quote) -> dict[str, Any]:
        return totals(quote.totals())


def _shown(quote: Quote, status: int = 200) -> Response:
    found = (
        Quote.objects.select_related("warranty")
        .prefetch_related(
            "lines__rfq_line", "lines__breaks", "lines__promises", "attachments__file"
        )
        .get(pk=quote.pk)
    )
    return Response(OwnQuoteSerializer(found).data, status=status)


class VendorRfq(VendorView):
    """What is asked for, until the deadline."""

    @extend_schema(responses=PublicRfqSerializer, auth=[])
    def get(self, request: Request) -> Response:
        vendor_access.require_open(self.token)
        rfq = Rfq.objects.prefetch_related(
            "lines", "criteria", "requirements", "clauses__clause"
        ).get(pk=self.token.invitation.rfq_id)
        return Response(PublicRfqSerializer(rfq).data)


class VendorRfqDocument(VendorView):
    """The RFQ as PDF, in the vendor's language."""

    @extend_schema(responses={(200, "application/pdf"): OpenApiTypes.BINARY}, auth=[])
    def get(self, request: Request) -> HttpResponseBase:
        vendor_access.require_open(self.token)
        invitation = self.token.invitation
        rows = invitation.rfq.documents.select_related("file")
        row = rows.filter(language=invitation.vendor.language).first()  # the newest
        if row is None or row.file is None:
            raise Http404
        return download(row.file)


class VendorTemplate(VendorView):
    """The lines as a table to fill in, headed in English or Chinese (`language=zh`)."""

    @extend_schema(
        parameters=[OpenApiParameter("language", str)],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
        auth=[],
    )
    def get(self, request: Request, kind: str) -> HttpResponseBase:
        vendor_access.require_open(self.token)
        rfq = self.token.invitation.rfq
        language = request.query_params.get("language", "en")
        return export_response(kind, **quote_template(rfq, language))


class OfferParts(serializers.Serializer[Any]):
    """With files: the quote as JSON in `quote`, and the files."""

    quote = serializers.CharField(help_text="The offer as JSON")
    files = serializers.ListField(child=serializers.FileField(), required=False)


class WithdrawalInput(serializers.Serializer[Any]):
    reason = serializers.CharField()


class VendorQuote(VendorView):
    """The vendor's own quote. POST submits one, or revises the one that stands; DELETE withdraws it, with a reason.

    A quote that comes within a day of the deadline is kept, marked late and not scored.
    """

    @extend_schema(responses=OwnQuoteSerializer(many=True), auth=[])
    def get(self, request: Request) -> Response:
        """Every version, newest first."""
        vendor_access.require_open(self.token)
        rows = (
            vendor_access.own_quotes(self.token)
            .select_related("warranty")
            .prefetch_related(
                "lines__rfq_line", "lines__breaks", "lines__promises", "attachments__file"
            )
        )
        return Response(OwnQuoteSerializer(rows, many=True).data)

    @extend_schema(
        request={"application/json": OfferInput, "multipart/form-data": OfferParts},
        responses={201: OwnQuoteSerializer},
        auth=[],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        body: Any = request.data
        files: list[Any] = []
        if "multipart" in (request.content_type or ""):
            files = request.FILES.getlist("files")
            try:
                body = json.loads(body.get("quote", ""))
            except (ValueError, RecursionError):
                raise ParseError(gettext("The part “quote” is not JSON")) from None
        data = checked(OfferInput(data=body))
        quote = vendor_access.submit_quote(token=self.token, files=files, **data)
        return _shown(quote, 201)

    @extend_schema(request=WithdrawalInput, responses=OwnQuoteSerializer, auth=[])
    def delete(self, request: Request) -> Response:
        data = checked(WithdrawalInput(data=request.data))
        return _shown(vendor_access.withdraw_own(token=self.token, **data))


class VendorQuoteFile(VendorView):
    """A file of the vendor's own quote."""

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY}, auth=[])
    def get(self, request: Request, revision: int, pk: int) -> HttpResponseBase:
        vendor_access.require_open(self.token)
        quote = vendor_access.own_quotes(self.token).filter(revision=revision).first()
        found = quote and quote.attachments.select_related("file").filter(pk=pk).first()
        if not found:
            raise Http404
        return download(found.file)


# --- the buyer's side ----------------------------------------------------------------------------------------------


class KeySerializer(serializers.ModelSerializer[VendorToken]):
    vendor = serializers.IntegerField(source="invitation.vendor_id")
    issued_by = Named()

    class Meta:
        model = VendorToken
        fields = ["vendor", "issued_by", "issued_at", "last_used_at"]


class IssuedKeySerializer(serializers.Serializer[Any]):
    key = serializers.CharField()


class RfqVendorKeys(APIView):
    """Which vendors hold a key to this RFQ. The keys themselves are kept nowhere."""

    @extend_schema(responses=KeySerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        rfq = visible(request, "rfq", pk)
        rows = VendorToken.objects.filter(invitation__rfq=rfq, revoked_at=None)
        found = rows.select_related("invitation", "issued_by")
        return Response(KeySerializer(found, many=True).data)


class RfqVendorKey(APIView):
    """The key of one invited vendor: POST a new one, DELETE the one that stands."""

    @extend_schema(request=None, responses={201: IssuedKeySerializer})
    def post(self, request: Request, pk: int, vendor: int) -> Response:
        """The answer is the only place where it is shown."""
        visible(request, "rfq", pk)
        key = vendor_access.issue_token(rfq_id=pk, vendor_id=vendor, by=api_user(request))
        return Response({"key": key}, status=201)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int, vendor: int) -> Response:
        visible(request, "rfq", pk)
        vendor_access.revoke_token(rfq_id=pk, vendor_id=vendor, by=api_user(request))
        return Response(status=204)
