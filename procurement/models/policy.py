"""How strictly the organisation buys. One row."""

from __future__ import annotations

from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from core.models import User


class Sealing(models.TextChoices):
    NEVER = "never", _("Never")
    CHOICE = "choice", _("As the buyer chooses")
    ALWAYS = "always", _("Always")


class PurchasingPolicy(models.Model):
    """Steps that a small team switches off and a regulated firm must keep."""

    sealing = models.CharField(
        _("sealed bids"), max_length=8, choices=Sealing.choices, default=Sealing.CHOICE
    )
    openers = models.PositiveSmallIntegerField(
        _("people to open sealed bids"),
        default=2,
        validators=[MinValueValidator(1), MaxValueValidator(5)],
    )
    minimum_vendors = models.PositiveSmallIntegerField(_("vendors to invite, at least"), default=1)
    reason_length = models.PositiveSmallIntegerField(
        _("length of an award's reason, at least (characters)"), default=20
    )
    conflict_statements = models.BooleanField(
        _("conflict-of-interest statements before an award"), default=False
    )
    over_delivery = models.DecimalField(
        _("over-delivery tolerance"), max_digits=5, decimal_places=4, default=Decimal(0)
    )  # share of the ordered quantity
    price_tolerance = models.DecimalField(
        _("price tolerance on invoices"), max_digits=5, decimal_places=4, default=Decimal(0)
    )  # share of the ordered unit price
    burn_in_hours = models.PositiveSmallIntegerField(_("burn-in (hours)"), default=72)
    # A change that loosens and waits for a second administrator: field → value as text. Empty: none waits.
    proposed = models.JSONField(default=dict, editable=False)
    proposed_from = models.JSONField(
        default=dict, editable=False
    )  # the values that it was proposed against
    proposed_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, editable=False, related_name="+"
    )
    proposed_at = models.DateTimeField(null=True, blank=True, editable=False)
    singleton = models.BooleanField(default=True, unique=True, editable=False)
    version = models.PositiveIntegerField(default=1, editable=False)
    waits = False  # of the row that a call returns: what it asked for is proposed, not in force

    class Meta:
        verbose_name = _("purchasing policy")
        verbose_name_plural = _("purchasing policies")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(singleton=True), name="one_purchasing_policy"
            ),
            models.CheckConstraint(
                condition=models.Q(burn_in_hours__gte=1), name="purchasing_policy_hours"
            ),
            models.CheckConstraint(
                condition=models.Q(proposed_at=None, proposed_by=None)
                | models.Q(proposed_at__isnull=False, proposed_by__isnull=False),
                name="purchasing_policy_proposed_by_someone",
            ),
        ]

    def __str__(self) -> str:
        return str(self._meta.verbose_name)

    @classmethod
    def current(cls) -> PurchasingPolicy:
        """The row in force; the defaults when none was set."""
        return cls.objects.first() or cls()
