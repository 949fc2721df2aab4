"""Budgets and their ledger. A balance is a sum over entries, never a stored number."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.models import CURRENCY_CHOICES, AppendOnlyError, AppendOnlyQuerySet, Team, User
from core.quarters import Quarter
from planning.models.plans import SpendKind
from planning.models.requests import CapacityRequest, visible_teams
from planning.states import CHANGE_RULES, ChangeStatus, transitions


class BudgetQuerySet(models.QuerySet["Budget"]):
    def visible_to(self, user: User) -> BudgetQuerySet:
        """Budgets of the teams that `user` may see."""
        teams = visible_teams(user)
        return self if teams is None else self.filter(team__in=teams)


class Budget(models.Model):
    """The money of one team, in one fiscal quarter, for one kind of spend. Its row is what approvals lock."""

    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, related_name="budgets", verbose_name=_("team")
    )
    fiscal_year = models.PositiveIntegerField(_("fiscal year"))  # named by the year it ends in
    quarter = models.PositiveSmallIntegerField(_("quarter"))
    kind = models.CharField(_("kind"), max_length=10, choices=SpendKind.choices)
    currency = models.CharField(_("currency"), max_length=3, choices=CURRENCY_CHOICES)
    closed_at = models.DateTimeField(_("closed"), null=True, blank=True)

    objects = BudgetQuerySet.as_manager()

    class Meta:
        verbose_name = _("budget")
        verbose_name_plural = _("budgets")
        ordering = ["-fiscal_year", "-quarter", "team__name", "kind"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "fiscal_year", "quarter", "kind"], name="budget_once"
            ),
            models.CheckConstraint(condition=Q(quarter__range=(1, 4)), name="budget_quarter"),
        ]

    def __str__(self) -> str:
        return f"{self.team} {self.label} {self.get_kind_display()}"

    def get_absolute_url(self) -> str:
        return reverse("budget-detail", args=[self.pk])

    @property
    def label(self) -> str:
        """`2027Q1`."""
        return f"{self.fiscal_year}Q{self.quarter}"

    def period(self, start_month: int) -> Quarter:
        """The quarter, for a fiscal year that starts in `start_month`."""
        return Quarter(self.fiscal_year, self.quarter, start_month)


class EntryKind(models.TextChoices):
    """What happened."""

    ALLOTTED = "allotted", _("Allotted")
    TRANSFERRED = "transferred", _("Transferred")
    RESERVED = "reserved", _("Reserved")
    RELEASED = "released", _("Released")
    COMMITTED = "committed", _("Committed")
    ACTUAL = "actual", pgettext_lazy("ledger", "Actual")
    REVERSED = "reversed", _("Reversed")
    CARRIED = "carried", _("Carried over")
    REVALUED = "revalued", _("Re-valued")  # a rate moved; `original_amount` is what is still bound


class Bucket(models.TextChoices):
    """Which sum an entry changes. Available = allotted - approved - committed - actual."""

    ALLOTTED = "allotted", _("Allotted")
    RESERVED = "reserved", _("Asked for")  # submitted and not yet decided: soft
    APPROVED = "approved", _("Approved, not ordered")  # firm
    COMMITTED = "committed", _("Ordered")
    ACTUAL = "actual", _("Spent")


class LedgerEntry(models.Model):
    """One signed amount in one bucket of one budget, for one source document. Append-only.

    Unique over budget, source, kind, bucket and revision: the same document cannot be posted twice.
    """

    budget = models.ForeignKey(Budget, on_delete=models.PROTECT, related_name="entries")
    kind = models.CharField(_("kind"), max_length=12, choices=EntryKind.choices)
    bucket = models.CharField(max_length=10, choices=Bucket.choices)
    amount = models.DecimalField(_("amount"), max_digits=18, decimal_places=3)  # budget's currency
    source = models.CharField(_("document"), max_length=80)  # e.g. request:12, order:PO-2027-0001
    revision = models.PositiveIntegerField(default=0)  # of the source document
    request = models.ForeignKey(
        CapacityRequest, on_delete=models.PROTECT, null=True, blank=True, related_name="ledger"
    )
    original_amount = models.DecimalField(max_digits=18, decimal_places=6)  # as on the document
    original_currency = models.CharField(max_length=3, choices=CURRENCY_CHOICES)
    rate = models.DecimalField(max_digits=18, decimal_places=8, default=1)
    rate_date = models.DateField()
    reverses = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="reversal"
    )
    posted_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    posted_at = models.DateTimeField(_("posted"), default=timezone.now)
    reason = models.CharField(_("reason"), max_length=300, blank=True)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = _("ledger entry")
        verbose_name_plural = _("ledger entries")
        ordering = ["-id"]
        default_permissions = ("view",)
        indexes = [models.Index(fields=["budget", "bucket"], name="ledger_budget_bucket")]
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "source", "kind", "bucket", "revision"], name="ledger_post_once"
            ),
            models.CheckConstraint(condition=~Q(amount=0), name="ledger_not_zero"),
            models.CheckConstraint(
                condition=Q(kind="allotted", bucket="allotted")
                | Q(kind="transferred", bucket="allotted")
                | Q(kind="reserved", bucket__in=["reserved", "approved"], amount__gt=0)
                | Q(kind="released", bucket__in=["reserved", "approved", "committed"], amount__lt=0)
                | Q(kind="committed", bucket="committed")
                | Q(kind="actual", bucket="actual")
                | Q(kind="carried", bucket__in=["allotted", "reserved", "approved", "committed"])
                | Q(kind="revalued", bucket__in=["approved", "committed"])
                | Q(kind="reversed", reverses__isnull=False),
                name="ledger_kind_bucket",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget} {self.kind} {self.amount:+}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnlyError("Ledger entries are never changed: reverse them")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError("Ledger entries are never deleted: reverse them")


class BudgetChange(models.Model):
    """A proposed allotment or transfer: posted by a second person, or at once where the policy asks for one only."""

    Status = ChangeStatus
    TRANSITIONS = transitions(CHANGE_RULES)

    budget = models.ForeignKey(Budget, on_delete=models.PROTECT, related_name="changes")
    giver = models.ForeignKey(
        Budget, on_delete=models.PROTECT, null=True, blank=True, related_name="given",
        verbose_name=_("from budget"),
    )  # fmt: skip
    amount = models.DecimalField(_("amount"), max_digits=18, decimal_places=3)
    carries = models.CharField(
        max_length=80, blank=True
    )  # the order that goes along, as in the ledger
    request = models.ForeignKey(
        CapacityRequest, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    reason = models.CharField(_("reason"), max_length=300)
    status = models.CharField(
        _("state"), max_length=10, choices=ChangeStatus.choices, default=ChangeStatus.PROPOSED
    )
    version = models.PositiveIntegerField(default=1, editable=False)
    proposed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField(default=timezone.now)
    decided_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("budget change")
        verbose_name_plural = _("budget changes")
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=~Q(amount=0), name="change_not_zero"),
            models.CheckConstraint(
                condition=Q(giver=None) | (Q(amount__gt=0) & ~Q(giver=models.F("budget"))),
                name="change_transfer",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget} {self.amount:+}"

    @property
    def source(self) -> str:
        return f"change:{self.pk}"
