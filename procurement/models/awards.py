"""The choice of a winner, or of several by quantity, with its written reason."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from core.machines import transitions
from core.models import LANGUAGE_CHOICES, Job, StoredFile, User
from planning.models import Site
from procurement.models.base import Versioned, quantity_field, within_teams
from procurement.models.quotes import Quote, QuoteLine
from procurement.models.rfqs import Rfq
from procurement.states import AWARD_RULES, AwardStatus


class AwardQuerySet(models.QuerySet["Award"]):
    def visible_to(self, user: User) -> AwardQuerySet:
        return within_teams(self, user, "rfq__lines__request")  # type: ignore[no-any-return]


class Award(Versioned):
    """A proposal to buy, and the decision on it. At most one stands per RFQ."""

    Status = AwardStatus
    TRANSITIONS = transitions(AWARD_RULES)
    RULES = AWARD_RULES

    rfq = models.ForeignKey(Rfq, on_delete=models.PROTECT, related_name="awards")
    status = models.CharField(
        _("state"), max_length=10, choices=AwardStatus.choices, default=AwardStatus.PROPOSED
    )
    reason = models.TextField(_("reason"))
    to_none = models.BooleanField(_("to no vendor"), default=False)
    proposed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    decided_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    decision_reason = models.TextField(blank=True)
    # Where its orders are to be delivered; null: where the plans of their requests stand.
    site = models.ForeignKey(
        Site, on_delete=models.PROTECT, null=True, related_name="awards", verbose_name=_("site")
    )
    sheet = models.JSONField(default=list)  # the comparison as it was when proposed
    quote_hashes = models.JSONField(default=dict)  # quote id → content hash
    # What the decision rests on, as it stood then; memo and letters are drawn from it alone.
    record = models.JSONField(null=True, editable=False)
    record_hash = models.CharField(max_length=64, blank=True, editable=False)

    objects = AwardQuerySet.as_manager()

    class Meta:
        verbose_name = _("award")
        verbose_name_plural = _("awards")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["rfq"],
                condition=Q(status__in=["proposed", "approved"]),
                name="one_award_per_rfq",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="award_has_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.rfq.number} · {self.get_status_display()}"

    @property
    def trail_label(self) -> str:
        """Its name in the audit trail, which knows no language."""
        return self.rfq.number

    def get_absolute_url(self) -> str:
        return reverse("rfq-detail", args=[self.rfq_id])


class AwardLine(models.Model):
    """So many items of one quote line."""

    award = models.ForeignKey(Award, on_delete=models.CASCADE, related_name="lines")
    quote_line = models.ForeignKey(QuoteLine, on_delete=models.PROTECT, related_name="award_lines")
    quantity = quantity_field()

    class Meta:
        verbose_name = _("award line")
        verbose_name_plural = _("award lines")
        ordering = ["award_id", "quote_line_id"]
        constraints = [
            models.UniqueConstraint(fields=["award", "quote_line"], name="award_line_once"),
            models.CheckConstraint(condition=Q(quantity__gt=0), name="award_line_quantity"),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} × {self.quote_line}"


class DocumentKind(models.TextChoices):
    MEMO = "memo", _("Award memo")
    REGRET = "regret", _("Regret letter")


class AwardDocument(models.Model):
    """The memo of an award in one language, or the letter to one vendor that was not chosen."""

    award = models.ForeignKey(Award, on_delete=models.PROTECT, related_name="documents")
    kind = models.CharField(_("kind"), max_length=6, choices=DocumentKind.choices)
    language = models.CharField(_("language"), max_length=10, choices=LANGUAGE_CHOICES)
    quote = models.ForeignKey(Quote, on_delete=models.PROTECT, null=True, related_name="+")
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("document of an award")
        verbose_name_plural = _("documents of an award")
        ordering = ["kind", "language", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["award", "language"], condition=Q(kind="memo"), name="award_memo_once"
            ),
            models.UniqueConstraint(
                fields=["award", "quote"], condition=Q(kind="regret"), name="regret_letter_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.award.rfq.number} {self.kind} {self.language}"
