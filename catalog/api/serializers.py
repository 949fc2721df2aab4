"""What the API says of the catalogue: SI units, decimal strings for money, source and date with every figure."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from catalog.models import (
    Accelerator,
    AcceleratorSpec,
    ArchitectureSpec,
    Confidence,
    LeaseOffer,
    ModelArchitecture,
    OfferPrice,
    PlatformSpec,
    PriceImport,
    PriceRecord,
    ServerPlatform,
    TcoDefault,
    TcoDefaultValue,
)
from core.drf import StrictJSONField
from core.models import CURRENCY_CHOICES, ExchangeRate

REVISION = [
    "number", "origin", "reason", "source", "source_url", "as_of", "confidence", "notes", "created_at",
]  # fmt: skip


class AcceleratorSpecSerializer(serializers.ModelSerializer[AcceleratorSpec]):
    """Bytes, B/s, FLOP/s (dense, by dtype), W."""

    class Meta:
        model = AcceleratorSpec
        fields = [*REVISION, *AcceleratorSpec.FIGURES]


class AcceleratorSerializer(serializers.ModelSerializer[Accelerator]):
    current = AcceleratorSpecSerializer(read_only=True)

    class Meta:
        model = Accelerator
        fields = [
            "slug", "name", "vendor", "generation", "architecture", "year", "aliases", "devices_per_board", "current",
        ]  # fmt: skip


class AcceleratorDetailSerializer(AcceleratorSerializer):
    revisions = AcceleratorSpecSerializer(source="specs", many=True, read_only=True)

    class Meta(AcceleratorSerializer.Meta):
        fields = [*AcceleratorSerializer.Meta.fields, "revisions"]


class ArchitectureSpecSerializer(serializers.ModelSerializer[ArchitectureSpec]):
    kv_elements_per_token = serializers.IntegerField(read_only=True, allow_null=True)

    class Meta:
        model = ArchitectureSpec
        fields = [*REVISION, *ArchitectureSpec.FIGURES, "kv_elements_per_token"]


class ModelSerializer(serializers.ModelSerializer[ModelArchitecture]):
    current = ArchitectureSpecSerializer(read_only=True)

    class Meta:
        model = ModelArchitecture
        fields = ["slug", "name", "family", "kind", "licence", "current"]


class ModelDetailSerializer(ModelSerializer):
    revisions = ArchitectureSpecSerializer(source="specs", many=True, read_only=True)

    class Meta(ModelSerializer.Meta):
        fields = [*ModelSerializer.Meta.fields, "revisions"]


class OfferPriceSerializer(serializers.ModelSerializer[OfferPrice]):
    cloud = serializers.CharField(source="offer.cloud", read_only=True)
    region = serializers.CharField(source="offer.region", read_only=True)
    instance_type = serializers.CharField(source="offer.instance_type", read_only=True)
    accelerator = serializers.CharField(source="offer.accelerator.slug", read_only=True)
    accelerator_count = serializers.IntegerField(source="offer.accelerator_count", read_only=True)
    complete = serializers.BooleanField(source="offer.complete", read_only=True)
    price_per_instance_hour = serializers.DecimalField(
        source="amount", max_digits=18, decimal_places=6, read_only=True
    )
    price_per_accelerator_hour = serializers.DecimalField(
        source="per_accelerator", max_digits=18, decimal_places=6, read_only=True
    )

    class Meta:
        model = OfferPrice
        fields = [
            "id", "cloud", "region", "instance_type", "accelerator", "accelerator_count", "complete", "kind",
            "term_months", "price_per_instance_hour", "price_per_accelerator_hour", "currency", "as_of",
            "as_of_precision", "source", "source_url", "confidence", "quality", "snapshot", "notes",
        ]  # fmt: skip


class PlatformSpecSerializer(serializers.ModelSerializer[PlatformSpec]):
    """W and kg."""

    class Meta:
        model = PlatformSpec
        fields = [*REVISION, *PlatformSpec.FIGURES]


class PlatformSerializer(serializers.ModelSerializer[ServerPlatform]):
    accelerator = serializers.CharField(source="accelerator.slug", read_only=True)
    current = PlatformSpecSerializer(read_only=True)

    class Meta:
        model = ServerPlatform
        fields = ["slug", "name", "accelerator", "accelerator_count", "current"]


class TcoValueSerializer(serializers.ModelSerializer[TcoDefaultValue]):
    class Meta:
        model = TcoDefaultValue
        fields = [*REVISION, "low", "value", "high"]


class TcoSerializer(serializers.ModelSerializer[TcoDefault]):
    current = TcoValueSerializer(read_only=True)
    reference = TcoValueSerializer(read_only=True)

    class Meta:
        model = TcoDefault
        fields = ["key", "unit", "current", "reference"]


class HardwarePriceSerializer(serializers.ModelSerializer[PriceRecord]):
    accelerator = serializers.CharField(
        source="accelerator.slug", read_only=True, default=None, allow_null=True
    )
    platform = serializers.CharField(
        source="platform.slug", read_only=True, default=None, allow_null=True
    )
    unit_price_low = serializers.DecimalField(
        source="low", max_digits=18, decimal_places=2, read_only=True
    )
    unit_price_high = serializers.DecimalField(
        source="high", max_digits=18, decimal_places=2, read_only=True
    )

    class Meta:
        model = PriceRecord
        fields = [
            "id", "accelerator", "platform", "unit_price_low", "unit_price_high", "currency", "condition",
            "tax_included", "as_of", "as_of_precision", "source", "source_url", "confidence", "notes",
        ]  # fmt: skip


class RateSerializer(serializers.ModelSerializer[ExchangeRate]):
    class Meta:
        model = ExchangeRate
        fields = ["id", "base", "quote", "rate", "as_of", "source"]
        read_only_fields = fields


class RateInput(serializers.Serializer[Any]):
    """One `base` costs `rate` of `quote`."""

    base = serializers.ChoiceField(choices=CURRENCY_CHOICES)
    quote = serializers.ChoiceField(choices=CURRENCY_CHOICES)
    rate = serializers.DecimalField(max_digits=18, decimal_places=8)
    as_of = serializers.DateField()
    source = serializers.CharField(max_length=200)  # type: ignore[assignment]


class CorrectionInput(serializers.Serializer[Any]):
    """The figures that differ, in the units of the answer, and why."""

    changes = serializers.DictField(child=StrictJSONField(allow_null=True), allow_empty=False)
    reason = serializers.CharField()
    source = serializers.CharField(max_length=400)  # type: ignore[assignment]
    source_url = serializers.URLField(required=False, default="", allow_blank=True)
    as_of = serializers.DateField()
    confidence = serializers.ChoiceField(choices=Confidence.choices)
    seen = serializers.IntegerField(required=False, help_text="Number of the revision you read")


class OfferPriceInput(serializers.Serializer[Any]):
    """One row of a cloud price file."""

    cloud = serializers.CharField()
    region = serializers.CharField()
    instance_type = serializers.CharField()
    accelerator = serializers.CharField(help_text="A slug or a name people use, such as H100-80GB")
    accelerator_count = serializers.IntegerField(min_value=1)
    kind = serializers.ChoiceField(choices=OfferPrice.Kind.choices)
    term_months = serializers.IntegerField(required=False)
    price_per_instance_hour = serializers.DecimalField(max_digits=18, decimal_places=6)
    currency = serializers.ChoiceField(choices=CURRENCY_CHOICES)
    as_of = serializers.DateField()
    source = serializers.CharField()  # type: ignore[assignment]
    source_url = serializers.URLField(required=False)
    confidence = serializers.ChoiceField(choices=Confidence.choices, required=False)
    notes = serializers.CharField(required=False)


class LeaseSerializer(serializers.ModelSerializer[LeaseOffer]):
    platform = serializers.CharField(source="platform.slug", read_only=True)

    class Meta:
        model = LeaseOffer
        fields = [
            "id", "platform", "lessor", "monthly", "currency", "term_months", "deposit", "buyout", "as_of",
            "valid_until", "source", "source_url", "confidence", "notes",
        ]  # fmt: skip


class LeaseInput(serializers.Serializer[Any]):
    """What a lessor asks for one server a month."""

    platform = serializers.CharField(max_length=120)
    lessor = serializers.CharField(max_length=120)
    monthly = serializers.DecimalField(max_digits=18, decimal_places=2)
    currency = serializers.ChoiceField(choices=CURRENCY_CHOICES)
    term_months = serializers.IntegerField()
    deposit = serializers.DecimalField(
        max_digits=18, decimal_places=2, required=False, allow_null=True
    )
    buyout = serializers.DecimalField(
        max_digits=18, decimal_places=2, required=False, allow_null=True
    )
    as_of = serializers.DateField(required=False)
    valid_until = serializers.DateField(required=False, allow_null=True)
    source = serializers.CharField(max_length=400)  # type: ignore[assignment]
    source_url = serializers.URLField(max_length=500, required=False, allow_blank=True)
    notes = serializers.CharField(required=False, allow_blank=True, max_length=2000)


class HardwarePriceInput(serializers.Serializer[Any]):
    """One row of a hardware price file. Prices are per card or per server."""

    item = serializers.CharField(help_text="An accelerator or a server platform")
    unit_price_low = serializers.DecimalField(max_digits=18, decimal_places=2)
    unit_price_high = serializers.DecimalField(max_digits=18, decimal_places=2, required=False)
    currency = serializers.ChoiceField(choices=CURRENCY_CHOICES)
    condition = serializers.ChoiceField(choices=PriceRecord.Condition.choices, required=False)
    tax_included = serializers.ChoiceField(choices=["yes", "no", "unstated"], required=False)
    as_of = serializers.DateField()
    source = serializers.CharField()  # type: ignore[assignment]
    source_url = serializers.URLField(required=False)
    confidence = serializers.ChoiceField(choices=Confidence.choices, required=False)
    notes = serializers.CharField(required=False)


class PriceImportInput(serializers.Serializer[Any]):
    target = serializers.ChoiceField(choices=PriceImport.Target.choices)
    file = serializers.FileField()
    encoding = serializers.CharField(required=False, default="")


class EncodingInput(serializers.Serializer[Any]):
    encoding = serializers.CharField()


class FateSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField()
    fate = serializers.ChoiceField(choices=["add", "unchanged", "refused"])
    message = serializers.CharField()
    cells = serializers.DictField(child=serializers.CharField())


class PriceImportSerializer(serializers.ModelSerializer[PriceImport]):
    """A preview while `status` is "preview": `rows` say what applying would do."""

    name = serializers.CharField(source="file.name", read_only=True)
    counts = serializers.SerializerMethodField()
    rows = serializers.SerializerMethodField()
    encodings = serializers.SerializerMethodField()

    class Meta:
        model = PriceImport
        fields = [
            "id", "name", "target", "status", "version", "encoding", "delimiter", "counts", "rows", "encodings",
        ]  # fmt: skip

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_counts(self, row: PriceImport) -> dict[str, int]:
        preview = self.context.get("preview")
        return preview.counts if preview else row.counts

    @extend_schema_field(FateSerializer(many=True))
    def get_rows(self, row: PriceImport) -> list[dict[str, Any]]:
        return self.context.get("rows", [])  # type: ignore[no-any-return]

    @extend_schema_field(serializers.DictField(child=serializers.CharField()))
    def get_encodings(self, row: PriceImport) -> dict[str, str]:
        preview = self.context.get("preview")
        return dict(preview.choices or {}) if preview else {}
