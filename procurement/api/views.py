"""Buying and proving over the API: the same services, policies and errors as the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django import forms
from django.db.models import Prefetch, QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiResponse, OpenApiTypes, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.files import download_made
from core.http import api_user
from planning.models import CapacityRequest
from procurement import policies
from procurement.api import serializers as s
from procurement.forms.steps import AMENDMENT_STEPS, MODELS, STEPS, Step
from procurement.models import (
    Acceptance,
    Asset,
    Award,
    BurnInRun,
    Delivery,
    EvidenceFile,
    Invoice,
    OrderRevision,
    PurchaseOrder,
    PurchasingPolicy,
    Quote,
    QuoteLine,
    Rfq,
    Rma,
    RunItem,
    Substitution,
    UnitVerdict,
    Vendor,
)
from procurement.selectors.assets import found_serials
from procurement.selectors.comparable import comparables
from procurement.selectors.comparison import compare
from procurement.selectors.compliances import compliances
from procurement.selectors.delivery_risk import quote_risks
from procurement.selectors.levers import levers
from procurement.selectors.quote_changes import quote_changes
from procurement.selectors.requirements import criteria_met_by
from procurement.selectors.sensitivity import ranking_sensitivity
from procurement.selectors.thread import request_thread
from procurement.selectors.vendor_scores import vendor_scores
from procurement.selectors.whole_cost import whole_costs
from procurement.serials import UnitEntry
from procurement.services import (
    awards,
    burn_in,
    deliveries,
    evidence,
    invoices,
    orders,
    policy,
    quotes,
    rfqs,
    rmas,
    vendors,
)

# noun → (rows with all that their serializer reads, the serializer)
SHOWN: dict[str, tuple[Callable[[], QuerySet[Any]], type[serializers.BaseSerializer[Any]]]] = {
    "vendor": (
        lambda: Vendor.objects.prefetch_related("contacts", "documents__file"),
        s.VendorSerializer,
    ),
    "rfq": (
        lambda: Rfq.objects.select_related("owner").prefetch_related(
            "lines",
            "criteria",
            "requirements",
            "clauses__clause",
            "documents__file",
            "invitations",
            "quotes",
            "statements__person",
        ),
        s.RfqSerializer,
    ),
    "quote": (
        lambda: Quote.objects.select_related("rfq", "vendor", "warranty").prefetch_related(
            Prefetch(
                "lines",
                QuoteLine.objects.select_related("rfq_line").prefetch_related("breaks", "promises"),
            ),
            "payments",
            "answers",
            "rfq__requirements",
        ),
        s.QuoteSerializer,
    ),
    "award": (
        lambda: Award.objects.select_related(
            "proposed_by", "decided_by", "rfq", "site"
        ).prefetch_related("lines", "orders", "documents__file", "documents__quote"),
        s.AwardSerializer,
    ),
    "order": (
        lambda: PurchaseOrder.objects.select_related("vendor", "issued_by", "site"),
        s.OrderSerializer,
    ),
    "amendment": (
        lambda: OrderRevision.objects.select_related("order", "proposed_by", "decided_by"),
        s.AmendmentSerializer,
    ),
    "substitution": (
        lambda: Substitution.objects.select_related("order_line", "decided_by"),
        s.SubstitutionSerializer,
    ),
    "delivery": (
        lambda: Delivery.objects.select_related("received_by").prefetch_related(
            "lines__order_line"
        ),
        s.DeliverySerializer,
    ),
    "asset": (lambda: Asset.objects.prefetch_related("warranties"), s.AssetSerializer),
    "burn-in": (
        lambda: BurnInRun.objects.select_related("operator").prefetch_related(
            Prefetch("items", RunItem.objects.select_related("item", "decided_by"))
        ),
        s.BurnInSerializer,
    ),
    "evidence": (
        lambda: EvidenceFile.objects.select_related("file").prefetch_related(
            Prefetch("verdicts", UnitVerdict.objects.select_related("asset"))
        ),
        s.EvidenceSerializer,
    ),
    "acceptance": (
        lambda: Acceptance.objects.select_related("proposed_by", "decided_by").prefetch_related(
            "units__asset"
        ),
        s.AcceptanceSerializer,
    ),
    "invoice": (
        lambda: Invoice.objects.select_related("matched_by", "approved_by").prefetch_related(
            "lines__order_line", "parts__milestone", "payments"
        ),
        s.InvoiceSerializer,
    ),
    "rma": (lambda: Rma.objects.prefetch_related("evidence"), s.RmaSerializer),
}
NOUN_OF = {model: noun for noun, model in MODELS.items()} | {
    OrderRevision: "amendment",
    EvidenceFile: "evidence",
}
# Rows that are prices through and through: only for those who read prices.
PRICED = frozenset({"award", "invoice", "amendment"})


def visible(request: Request, noun: str, pk: int) -> Any:
    """The row, or 404 outside what the caller may see."""
    rows, _serializer = SHOWN[noun]
    found = get_object_or_404(_seen(request, noun, rows()), pk=pk)
    if noun in PRICED and not policies.reads_prices(api_user(request), policies.teams_of(found)):
        raise NotFound
    return found


def _seen(request: Request, noun: str, rows: Any) -> Any:
    user = api_user(request)
    if noun == "amendment":
        return rows.filter(order__in=PurchaseOrder.objects.visible_to(user))
    return rows & rows.model.objects.visible_to(user)


def shown(request: Request, obj: Any, status: int = 200) -> Response:
    """The row as the API shows it, read anew, with its version as ETag."""
    noun = NOUN_OF[type(obj)]
    rows, serializer = SHOWN[noun]
    found = rows().get(pk=obj.pk)
    data = serializer(found, context={"request": request}).data
    version = getattr(found, "version", None)
    headers = {"ETag": f'"{version}"'} if version is not None else {}
    return Response(data, status=status, headers=headers)


def checked(serializer: Any) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return _plain(serializer.validated_data)


def _plain(value: Any) -> Any:
    """Ordinary dicts and lists, so that services see no framework types."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


# --- lists, details and steps, made from the tables ----------------------------------------------------------------


def list_view(noun: str, doc: str) -> type[ListAPIView[Any]]:
    rows, serializer = SHOWN[noun]

    class View(ListAPIView[Any]):
        serializer_class = serializer
        queryset = rows().model.objects.none()
        filterset_fields = [] if noun == "evidence" else ["status"]

        def get_queryset(self) -> QuerySet[Any]:
            found = _seen(self.request, noun, rows()).order_by("-pk")
            if noun in PRICED and not policies.reads_prices(api_user(self.request), ()):
                found = found.none()
            return found

    View.__name__ = f"{noun.title().replace('-', '')}List"
    View.__doc__ = doc
    return View


def detail_view(noun: str, doc: str) -> type[APIView]:
    _rows, serializer = SHOWN[noun]

    class View(APIView):
        @extend_schema(
            operation_id=f"procurement_{noun.replace('-', '_')}_read", responses=serializer
        )
        def get(self, request: Request, pk: int) -> Response:
            return shown(request, visible(request, noun, pk))

    View.__name__ = f"{noun.title().replace('-', '')}Detail"
    View.__doc__ = doc
    return View


FIELDS: tuple[
    tuple[type[forms.Field], Callable[..., serializers.Field[Any, Any, Any, Any]]], ...
] = (
    (forms.DateTimeField, serializers.DateTimeField),
    (forms.DateField, serializers.DateField),
    (forms.IntegerField, serializers.IntegerField),
    (forms.BooleanField, serializers.BooleanField),
)
# What the API takes beyond the page's form.
EXTRA: dict[tuple[str, str], dict[str, serializers.Field[Any, Any, Any, Any]]] = {
    ("delivery", "start-burn-in"): {
        "asset_ids": serializers.ListField(child=serializers.IntegerField(), required=False)
    },
    ("delivery", "propose-acceptance"): {
        "exclusions": serializers.DictField(child=serializers.CharField(), required=False)
    },
}


def input_of(step: Step) -> type[serializers.Serializer[Any]] | None:
    """A serializer with the fields of the step's form."""
    fields: dict[str, Any] = dict(EXTRA.get((step.noun, step.action), {}))
    for name, field in (step.form.base_fields if step.form else {}).items():
        # A decimal is sent as text: exact. (Django's decimal field is a kind of its integer field.)
        known = () if isinstance(field, forms.DecimalField) else FIELDS
        made = next((make for kind, make in known if isinstance(field, kind)), None)
        if made is not None:
            fields[name] = made(required=field.required)
        elif isinstance(field, forms.ChoiceField):
            fields[name] = serializers.ChoiceField(
                choices=[value for value, _label in list(cast(Any, field.choices))],
                required=field.required,
            )
        else:
            fields[name] = serializers.CharField(
                required=field.required, allow_blank=not field.required
            )
    if not fields:
        return None
    name = f"{step.noun}-{step.action}-input".title().replace("-", "")
    return type(name, (serializers.Serializer,), fields)


def step_view(step: Step) -> type[APIView]:
    taken = input_of(step)
    _rows, serializer = SHOWN[step.noun]

    class View(APIView):
        @extend_schema(
            operation_id=f"procurement_{step.noun}_{step.action}".replace("-", "_"),
            request=taken,
            responses=serializer,
        )
        @idempotent
        def post(self, request: Request, pk: int) -> Response:
            obj = visible(request, step.noun, pk)
            values = checked(taken(data=request.data)) if taken else {}
            if "exclusions" in values:
                values["exclusions"] = {
                    int(key): why for key, why in values["exclusions"].items() if key.isdecimal()
                }
            result = step.take(
                pk, by=api_user(request), version=seen_version(request), values=values
            )
            return shown(request, result if type(result) in NOUN_OF else obj)

    View.__name__ = f"{step.noun}-{step.action}".title().replace("-", "")
    View.__doc__ = str(step.text or step.label)
    return View


ALL_STEPS = (*STEPS, *AMENDMENT_STEPS)


# --- making things -------------------------------------------------------------------------------------------------


class VendorList(list_view("vendor", "")):  # type: ignore[misc]
    """Vendors; POST registers one."""

    @extend_schema(request=s.VendorSerializer, responses={201: s.VendorSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(s.VendorSerializer(data=request.data))
        return shown(request, vendors.create_vendor(by=api_user(request), **data), 201)


class VendorDetail(APIView):
    """One vendor; PATCH changes its data."""

    @extend_schema(responses=s.VendorSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return shown(request, visible(request, "vendor", pk))

    @extend_schema(request=s.VendorSerializer, responses=s.VendorSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        visible(request, "vendor", pk)
        data = checked(s.VendorSerializer(data=request.data, partial=True))
        vendor = vendors.update_vendor(
            vendor_id=pk, by=api_user(request), version=seen_version(request), **data
        )
        return shown(request, vendor)


def _rfq_arguments(data: dict[str, Any]) -> dict[str, Any]:
    if "vendors" in data:
        data["vendor_ids"] = data.pop("vendors")
    if "requests" in data:
        data["request_ids"] = data.pop("requests")
    return data


class RfqList(list_view("rfq", "")):  # type: ignore[misc]
    """RFQs; POST drafts one from approved requests."""

    @extend_schema(request=s.RfqInput, responses={201: s.RfqSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = _rfq_arguments(checked(s.RfqInput(data=request.data)))
        # A request of a team that the caller does not see does not exist for them.
        seen = CapacityRequest.objects.visible_to(api_user(request))
        data["request_ids"] = list(
            seen.filter(pk__in=data["request_ids"]).values_list("pk", flat=True)
        )
        return shown(request, rfqs.create_rfq(by=api_user(request), **data), 201)


class RfqDetail(APIView):
    """One RFQ; PATCH changes a draft."""

    @extend_schema(responses=s.RfqSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return shown(request, visible(request, "rfq", pk))

    @extend_schema(request=s.RfqEdit, responses=s.RfqSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        visible(request, "rfq", pk)
        data = _rfq_arguments(checked(s.RfqEdit(data=request.data)))
        rfq = rfqs.update_rfq(
            rfq_id=pk, by=api_user(request), version=seen_version(request), **data
        )
        return shown(request, rfq)


class RfqQuotes(APIView):
    """Record a quote on a vendor's behalf. A standing one of the same vendor is superseded."""

    @extend_schema(request=s.QuoteInput, responses={201: s.QuoteSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "rfq", pk)
        data = checked(s.QuoteInput(data=request.data))
        data["vendor_id"] = data.pop("vendor")
        quote = quotes.record_quote(
            rfq_id=pk, by=api_user(request), version=seen_version(request), **data
        )
        return shown(request, quote, 201)


class QuoteChangesView(APIView):
    """What a version of a quote changed against the one before it, with the change of the total in the quote's own
    currency; `null` for a first version. 409 while the bids are sealed, whoever asks."""

    @extend_schema(responses=OpenApiResponse(description="Fields and lines: before and after"))
    def get(self, request: Request, pk: int) -> Response:
        quote = visible(request, "quote", pk)
        found = quote_changes(quote)
        if not policies.can_read_prices(api_user(request), quote.rfq):
            raise NotFound
        return Response(None if found is None else found.to_json())


class RfqDocumentFile(APIView):
    """The RFQ as its vendors get it, as PDF."""

    @extend_schema(responses={(200, "application/pdf"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int, document: int) -> HttpResponseBase:
        rfq = visible(request, "rfq", pk)
        row = get_object_or_404(rfq.documents.select_related("file"), pk=document)
        return download_made(row.file)


class RfqComparison(APIView):
    """Quotes side by side. 409 while the bids are sealed, whoever asks."""

    @extend_schema(responses=OpenApiResponse(description="Rows by rank, amounts as strings"))
    def get(self, request: Request, pk: int) -> Response:
        rfq = visible(request, "rfq", pk)
        found = compare(rfq)
        hang, asked = ranking_sensitivity(found), levers(found)
        if not policies.can_read_prices(api_user(request), rfq):
            raise NotFound
        normalised, wholes, terms = comparables(found), whole_costs(found), compliances(found)
        risks = quote_risks([row.quote for row in found.rows], rfq.lines.all())
        history = vendor_scores([row.quote.vendor for row in found.rows], api_user(request))
        reached = criteria_met_by([row.quote for row in found.rows])
        return Response(
            {
                "currency": found.currency,
                "weights": found.weights,
                "sensitivity": hang.to_json() if hang else None,
                "concessions": s.ConcessionSerializer(
                    rfq.concessions.select_related("vendor", "recorded_by"), many=True
                ).data,
                "approved": s.money(found.approved),
                "old_rates": [row.to_json() for row in found.old_rates],
                "rows": [
                    row.to_json()
                    | {
                        "flags": [
                            {"code": flag.code, "severe": flag.severe,
                             "text": flag.message.render(gettext)}
                            for flag in row.flags
                        ],
                        "above_approved": s.money(found.above(row)),
                        "notes": [note.render(gettext) for note in row.notes],
                        "warranty": s.WarrantySerializer(row.quote.warranty).data,
                        "criteria": reached[row.quote.pk].to_json(),
                        "vendor_history": history[row.quote.vendor_id].to_json(),
                        "levers": [one.to_json(gettext) for one in asked.get(row.quote.pk, [])],
                        "comparable_net": s.money(normalised[row.quote.pk].net),
                        "assumptions": [
                            one.render(gettext) for one in normalised[row.quote.pk].assumptions
                        ],
                        "delivery_risk": risks[row.quote.pk].to_json(),
                        "whole_cost": wholes[row.quote.pk].to_json(gettext),
                        "compliance": [
                            {"term": check.term, "verdict": check.verdict,
                             "text": check.message.render(gettext)}
                            for check in terms[row.quote.pk]
                        ],
                    }
                    for row in found.rows
                ],
            }
        )  # fmt: skip


class RfqAwards(APIView):
    """Propose an award."""

    @extend_schema(request=s.AwardInput, responses={201: s.AwardSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "rfq", pk)
        data = checked(s.AwardInput(data=request.data))
        award = awards.propose_award(
            rfq_id=pk,
            by=api_user(request),
            quote_id=data["quote"],
            lines=[(line["quote_line"], line["quantity"]) for line in data.get("lines", [])],
            to_none=data["to_none"],
            site=data["site"],
            reason=data["reason"],
            version=seen_version(request),
        )
        return shown(request, award, 201)


class AwardDocumentFile(APIView):
    """The memo of an award, or a letter to a vendor that was not chosen, as PDF."""

    @extend_schema(responses={(200, "application/pdf"): bytes})
    def get(self, request: Request, pk: int, document: int) -> HttpResponseBase:
        award = visible(request, "award", pk)
        row = get_object_or_404(award.documents.select_related("file"), pk=document)
        return download_made(row.file)


class OrderAmendments(APIView):
    """Propose an amendment."""

    @extend_schema(request=s.AmendmentInput, responses={201: s.AmendmentSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "order", pk)
        data = checked(s.AmendmentInput(data=request.data))
        revision = orders.propose_amendment(
            order_id=pk,
            by=api_user(request),
            changes={line.pop("position"): line for line in data.get("lines", [])},
            payments=data["payments"],
            reason=data["reason"],
            version=seen_version(request),
        )
        return shown(request, revision, 201)


class OrderAnnouncements(APIView):
    """Announce a delivery with its packing list."""

    @extend_schema(request=s.AnnounceInput, responses={201: s.DeliverySerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "order", pk)
        data = checked(s.AnnounceInput(data=request.data))
        delivery = deliveries.announce_delivery(order_id=pk, by=api_user(request), **data)
        return shown(request, delivery, 201)


class OrderReceipts(APIView):
    """Count and post a delivery. The same delivery note again is 409, as is more than is open."""

    @extend_schema(request=s.ReceiptInput, responses={201: s.DeliverySerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "order", pk)
        data = checked(s.ReceiptInput(data=request.data))
        data["delivery_id"] = data.pop("delivery", None)
        for line in data["lines"]:
            line["units"] = [UnitEntry(**unit) for unit in line.get("units", [])]
        delivery = deliveries.receive_delivery(
            order_id=pk, by=api_user(request), version=seen_version(request), **data
        )
        return shown(request, delivery, 201)


class OrderInvoices(APIView):
    """Capture an invoice as printed."""

    @extend_schema(request=s.InvoiceInput, responses={201: s.InvoiceSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "order", pk)
        data = checked(s.InvoiceInput(data=request.data))
        invoice = invoices.capture_invoice(order_id=pk, by=api_user(request), **data)
        return shown(request, invoice, 201)


class DeliveryEvidence(APIView):
    """Upload an evidence file (multipart: file, node). It is read in the background: poll the job, then read it."""

    @extend_schema(request=s.EvidenceInput, responses={201: s.EvidenceSerializer})
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "delivery", pk)
        data = checked(s.EvidenceInput(data=request.data))
        found = evidence.upload_evidence(
            delivery_id=pk, upload=data["file"], by=api_user(request), node_id=data.get("node")
        )
        return shown(request, found, 201)


class DeliveryItems(APIView):
    """Note the same result on several checklist items of open runs."""

    @extend_schema(request=s.ItemsInput, responses=s.DeliverySerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        delivery = visible(request, "delivery", pk)
        data = checked(s.ItemsInput(data=request.data))
        burn_in.decide_items(delivery_id=pk, by=api_user(request), run_ids=data.pop("runs"), **data)
        return shown(request, delivery)


class RmaEvidence(APIView):
    """Attach evidence files to a draft claim."""

    @extend_schema(request=s.AttachInput, responses=s.RmaSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "rma", pk)
        data = checked(s.AttachInput(data=request.data))
        rma = rmas.attach_evidence(rma_id=pk, evidence_ids=data["evidence"], by=api_user(request))
        return shown(request, rma)


class AssetSearch(APIView):
    """Find units by a list of serial numbers; changes nothing."""

    @extend_schema(
        request=s.SerialsInput,
        responses=OpenApiResponse(description="found: assets; missing: serials"),
    )
    def post(self, request: Request) -> Response:
        data = checked(s.SerialsInput(data=request.data))
        rows = Asset.objects.visible_to(api_user(request))
        ids, missing = found_serials(rows, data["serials"])
        found = rows.filter(pk__in=ids).prefetch_related("warranties")
        return Response(
            {"found": s.AssetSerializer(found, many=True).data, "missing": list(missing)}
        )


class ThreadView(APIView):
    """One request from need to accepted GPU-hours: where it is, who has it, what blocks it, since when."""

    @extend_schema(responses=OpenApiResponse(description="Stages in order"))
    def get(self, request: Request, pk: int) -> Response:
        user = api_user(request)
        found = get_object_or_404(CapacityRequest.objects.visible_to(user).with_current(), pk=pk)
        thread = request_thread(found, user)
        return Response(
            {
                "request": found.reference,
                "status": found.status,
                "asked": thread.asked,
                "received": thread.received,
                "accepted": thread.accepted,
                "gpu_hours": thread.gpu_hours,
                "current": thread.current.key if thread.current else None,
                "stages": [
                    {
                        "key": stage.key,
                        "label": stage.label.render(gettext),
                        "state": stage.state,
                        "since": stage.since,
                        "holders": [_name(holder) for holder in stage.holders],
                        "facts": [fact.render(gettext) for fact in stage.facts],
                        "blocked_by": stage.blocked_by.render(gettext)
                        if stage.blocked_by
                        else None,
                    }
                    for stage in thread.stages
                ],
            }
        )


def _name(holder: Any) -> str:
    return holder.render(gettext) if hasattr(holder, "render") else str(holder)


class PolicyView(APIView):
    """How strictly the organisation buys; PATCH by administrators. 202: it loosens and waits for a second one."""

    @extend_schema(responses=s.PurchasingPolicySerializer)
    def get(self, request: Request) -> Response:
        return Response(s.PurchasingPolicySerializer(PurchasingPolicy.current()).data)

    @extend_schema(
        request=s.PurchasingPolicySerializer,
        responses={200: s.PurchasingPolicySerializer, 202: s.PurchasingPolicySerializer},
    )
    def patch(self, request: Request) -> Response:
        data = checked(s.PurchasingPolicySerializer(data=request.data, partial=True))
        changed = policy.set_purchasing_policy(
            by=api_user(request), version=seen_version(request), **data
        )
        return Response(
            s.PurchasingPolicySerializer(changed).data, status=202 if changed.waits else 200
        )


class PolicyStep(APIView):
    """confirm: a second administrator puts the proposed change in force; decline: it is dropped."""

    @extend_schema(request=None, responses=s.PurchasingPolicySerializer)
    def post(self, request: Request, step: str) -> Response:
        take = {
            "confirm": policy.confirm_purchasing_policy,
            "decline": policy.decline_purchasing_policy,
        }.get(step)
        if take is None:
            raise NotFound
        changed = take(by=api_user(request), version=seen_version(request))
        return Response(s.PurchasingPolicySerializer(changed).data)
