"""What lessors ask for servers: quotations, each a dated row."""

from __future__ import annotations

from datetime import date

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import OuterRef, Q, Subquery
from django.utils.translation import gettext_lazy as _

from catalog.models.platforms import ServerPlatform
from catalog.models.provenance import AppendOnlyModel, Provenance
from core.models import CURRENCY_CHOICES, AppendOnlyQuerySet

MOST_MONTHS = 120


class LeaseQuerySet(AppendOnlyQuerySet):
    """Quotations are added and read."""

    def standing(self, on: date) -> LeaseQuerySet:
        """Of each lessor, server and term the newest quotation, where it is still valid on the day."""
        same = LeaseOffer.objects.filter(
            platform=OuterRef("platform"), lessor=OuterRef("lessor"), term_months=OuterRef("term_months"),
            as_of__lte=on,
        )  # fmt: skip
        newest = same.order_by("-as_of", "-pk").values("pk")[:1]
        valid = Q(valid_until__isnull=True) | Q(valid_until__gte=on)
        rows: LeaseQuerySet = self.filter(valid, pk=Subquery(newest))
        return rows


class LeaseOffer(AppendOnlyModel, Provenance):
    """One server of a model for so much a month over so many months. Nothing is overwritten: a newer row counts."""

    platform = models.ForeignKey(
        ServerPlatform,
        on_delete=models.PROTECT,
        related_name="leases",
        verbose_name=_("server platform"),
    )
    lessor = models.CharField(_("lessor"), max_length=120)
    monthly = models.DecimalField(
        _("rate of a server and month, before tax"), max_digits=18, decimal_places=2
    )
    term_months = models.PositiveSmallIntegerField(
        _("term in months"), validators=[MinValueValidator(1), MaxValueValidator(MOST_MONTHS)]
    )
    deposit = models.DecimalField(
        _("deposit of a server"), max_digits=18, decimal_places=2, null=True, blank=True,
        help_text=_("Comes back at the end. Empty: not quoted."),
    )  # fmt: skip
    buyout = models.DecimalField(
        _("price to keep a server"), max_digits=18, decimal_places=2, null=True, blank=True,
        help_text=_("At the end of the term. Empty: not quoted."),
    )  # fmt: skip
    currency = models.CharField(_("currency"), max_length=3, choices=CURRENCY_CHOICES)
    valid_until = models.DateField(_("valid until (last day)"), null=True, blank=True)

    objects = LeaseQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        verbose_name = _("lease")
        verbose_name_plural = _("leases")
        ordering = ["-as_of", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(monthly__gt=0) & Q(term_months__gte=1, term_months__lte=MOST_MONTHS),
                name="lease_rate_and_term",
            ),
            models.CheckConstraint(
                condition=(Q(deposit__isnull=True) | Q(deposit__gte=0))
                & (Q(buyout__isnull=True) | Q(buyout__gte=0)),
                name="lease_money_not_negative",
            ),
            models.UniqueConstraint(
                fields=["platform", "lessor", "term_months", "as_of", "source"],
                name="lease_once_a_day",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lessor} · {self.platform} · {self.term_months}"
