"""What an RFQ says must be reached, and what a quote answers to it."""

from __future__ import annotations

from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.messages import Message
from procurement.models.quotes import Quote
from procurement.models.rfqs import Rfq
from procurement.per import Per
from procurement.requirements import Answered, Required, RequirementKind, words

KIND_CHOICES = [
    (RequirementKind.THROUGHPUT.value, _("Throughput")),
    (RequirementKind.MEMORY.value, _("Accelerator memory")),
    (RequirementKind.LATENCY.value, _("Latency")),
    (RequirementKind.POWER.value, pgettext_lazy("criterion", "Power")),
    (RequirementKind.DELIVERY.value, _("Day of delivery")),
]
PER_CHOICES = [
    (Per.WHOLE.value, _("in all")),
    (Per.SERVER.value, _("of a server")),
    (Per.CARD.value, _("of a card")),
]


class RfqRequirement(models.Model):
    """One criterion with its figure (see `procurement.requirements`)."""

    rfq = models.ForeignKey(Rfq, on_delete=models.CASCADE, related_name="requirements")
    position = models.PositiveSmallIntegerField(_("criterion"))
    kind = models.CharField(_("kind"), max_length=12, choices=KIND_CHOICES)
    benchmark = models.CharField(_("benchmark"), max_length=160, blank=True)
    value = models.DecimalField(_("figure"), max_digits=20, decimal_places=6, null=True, blank=True)
    unit = models.CharField(_("unit"), max_length=24, blank=True)
    per = models.CharField(
        _("figure of"), max_length=6, choices=PER_CHOICES, default=Per.WHOLE.value
    )
    day = models.DateField(_("day"), null=True, blank=True)
    lines = models.JSONField(default=list, blank=True)  # positions; none: all
    from_plan = models.BooleanField(default=False)  # taken from the approved plans, not typed

    class Meta:
        verbose_name = _("criterion to be reached")
        verbose_name_plural = _("criteria to be reached")
        ordering = ["rfq_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["rfq", "position"], name="rfq_requirement_position"),
            models.CheckConstraint(
                condition=Q(kind="delivery", day__isnull=False, value=None)
                | Q(value__gt=0, day=None),
                name="rfq_requirement_figure",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rfq.number} {self.position}. {self.kind}"

    @property
    def asked(self) -> Required:
        return Required(
            RequirementKind(self.kind),
            value=None if self.value is None else Decimal(self.value),
            unit=self.unit,
            per=Per(self.per),
            day=self.day,
            benchmark=self.benchmark,
            lines=tuple(self.lines),
            from_plan=self.from_plan,
        )

    @property
    def words(self) -> Message:
        """As a sentence."""
        return words(self.asked)


class QuoteAnswer(models.Model):
    """What a quote says of one criterion: a value, or that it is met or not. No row: it does not say."""

    quote = models.ForeignKey(Quote, on_delete=models.CASCADE, related_name="answers")
    requirement = models.ForeignKey(
        RfqRequirement, on_delete=models.PROTECT, related_name="answers"
    )
    value = models.DecimalField(_("figure"), max_digits=20, decimal_places=6, null=True, blank=True)
    day = models.DateField(_("day"), null=True, blank=True)
    stated = models.BooleanField(_("met, as the vendor says"), null=True, blank=True)
    note = models.CharField(_("note"), max_length=300, blank=True)

    class Meta:
        verbose_name = _("answer to a criterion")
        verbose_name_plural = _("answers to criteria")
        ordering = ["quote_id", "requirement__position"]
        constraints = [
            models.UniqueConstraint(fields=["quote", "requirement"], name="quote_answer_once")
        ]

    def __str__(self) -> str:
        return f"{self.quote} {self.requirement_id}"

    @property
    def said(self) -> Answered:
        return Answered(
            None if self.value is None else Decimal(self.value), self.day, self.stated, self.note
        )
