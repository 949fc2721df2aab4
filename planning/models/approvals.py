"""Who must agree to what: policies as data, steps made from them, votes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.models import CURRENCY_CHOICES, AppendOnlyError, AppendOnlyQuerySet, Team, User
from core.money import Money
from planning.models.delegations import Delegation
from planning.models.plans import SpendKind
from planning.models.requests import RequestRevision, Residence
from planning.states import STEP_RULES, StepStatus, transitions


class Authority(models.TextChoices):
    """Whose agreement a rule asks for."""

    TEAM_LEAD = "team_lead", _("Approver of the team")
    BUDGET_APPROVER = "budget_approver", _("Approver of the organisation")
    FINANCE = "finance", _("Finance")
    PROCUREMENT = "procurement", _("Procurement")


class CarryOver(models.TextChoices):
    """What becomes of money that nothing stands for when a quarter is closed."""

    LAPSE = "lapse", _("It lapses")
    ASK = "ask", _("Whoever closes the quarter says so")
    CARRY = "carry", _("It is carried to the next quarter")


class Preset(models.TextChoices):
    SMALL_TEAM = "small_team", _("Small team")
    COMPANY = "company", _("Company")
    REGULATED = "regulated", _("Regulated")
    CUSTOM = "custom", _("Own rules")


class Standing(models.TextChoices):
    ADOPTED = "adopted", pgettext_lazy("rules", "Adopted")
    WAITING = "waiting", _("Waits for a second administrator")
    DECLINED = "declined", pgettext_lazy("rules", "Dropped")


class ApprovalPolicy(models.Model):
    """One version of the rules; one is in force. A version is never changed: editing makes the next one, and a request
    keeps the one under which it was submitted. Where a second administrator must agree, the next one waits first."""

    preset = models.CharField(_("preset"), max_length=12, choices=Preset.choices)
    active = models.BooleanField(_("in force"), default=False)
    two_person_budget = models.BooleanField(_("allotments need two people"), default=True)
    allow_over_budget = models.BooleanField(_("over-commitment with a reason"), default=False)
    block_stale_study = models.BooleanField(_("no approval on an outdated study"), default=True)
    reservation_days = models.PositiveSmallIntegerField(
        _("reservations expire after (days)"), default=90
    )
    actual_tolerance = models.DecimalField(
        _("invoices may exceed the order by"), max_digits=5, decimal_places=4, default=0
    )
    order_tolerance = models.DecimalField(
        _("orders with tax may exceed what was approved by"), max_digits=5, decimal_places=4,
        default=Decimal("0.05"), help_text=_("A share: 0.05 is 5 %."),
    )  # fmt: skip
    over_approval = models.BooleanField(
        _("an approver may agree to more, with a reason"), default=True
    )
    rate_days = models.PositiveSmallIntegerField(
        _("warn of exchange rates older than (days)"), default=35
    )
    use_first_below = models.DecimalField(
        _("ask a team to use first what it has, when busy less than"), max_digits=4, decimal_places=3,
        null=True, blank=True, help_text=_("A share: 0.3 is 30 per cent. Empty: not asked."),
    )  # fmt: skip
    use_days = models.PositiveSmallIntegerField(_("measured over the last (days)"), default=28)
    use_needs_reason = models.BooleanField(
        _("such a team has to say why what it has does not do"), default=False
    )
    spread_terms = models.BooleanField(
        _("contracts over a term count in each quarter of theirs"), default=False
    )
    bind_ahead = models.BooleanField(
        _("later quarters without an allotment may be bound"), default=False
    )
    carry_over = models.CharField(
        _("unused money at the end of a quarter"), max_length=5, choices=CarryOver.choices,
        default=CarryOver.ASK,
    )  # fmt: skip
    revalue_from = models.DecimalField(
        _("re-value what is bound when a rate moved by"), max_digits=5, decimal_places=4,
        null=True, blank=True,
        help_text=_("A share: 0.01 is one per cent. Empty: only when finance does it."),
    )  # fmt: skip
    escalate_after_days = models.PositiveSmallIntegerField(
        _("escalate after working days without a decision"), default=0,
        help_text=_("0: never."),
    )  # fmt: skip
    loaded_at = models.DateTimeField(default=timezone.now)
    loaded_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    note = models.CharField(_("what changed"), max_length=300, blank=True)
    standing = models.CharField(
        max_length=8, choices=Standing.choices, default=Standing.ADOPTED, editable=False
    )
    replaces = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, editable=False, related_name="+"
    )  # what was in force when this one was written
    decided_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, editable=False, related_name="+"
    )  # who agreed as the second, or dropped it
    decided_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("approval policy")
        verbose_name_plural = _("approval policies")
        ordering = ["-active", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["active"], condition=Q(active=True), name="one_policy_in_force"
            ),
            models.UniqueConstraint(
                fields=["standing"], condition=Q(standing="waiting"), name="one_policy_waits"
            ),
            models.CheckConstraint(
                condition=Q(active=False) | Q(standing="adopted"), name="policy_in_force_is_adopted"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_preset_display()} · {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("policy-detail", args=[self.pk])


class ApprovalRule(models.Model):
    """One agreement that is asked for, when every condition it names holds. Groups run in order, rules of a group side
    by side."""

    policy = models.ForeignKey(ApprovalPolicy, on_delete=models.CASCADE, related_name="rules")
    group = models.PositiveSmallIntegerField(_("group"))
    authority = models.CharField(_("who"), max_length=16, choices=Authority.choices)
    quorum = models.PositiveSmallIntegerField(_("votes needed"), default=1)
    above = models.DecimalField(
        _("above"), max_digits=18, decimal_places=3, null=True, blank=True,
        help_text=_("Empty: any amount."),
    )  # fmt: skip
    above_currency = models.CharField(max_length=3, choices=CURRENCY_CHOICES, blank=True)
    spend_kind = models.CharField(_("budget"), max_length=10, choices=SpendKind.choices, blank=True)
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    residence = models.CharField(max_length=14, choices=Residence.choices, blank=True)
    over_budget_only = models.BooleanField(_("only when over budget"), default=False)
    low_use_only = models.BooleanField(
        _("only when the team uses little of what it has"), default=False
    )

    class Meta:
        verbose_name = _("approval rule")
        verbose_name_plural = _("approval rules")
        ordering = ["group", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(quorum__gte=1), name="rule_quorum"),
            models.CheckConstraint(
                condition=Q(above=None, above_currency="")
                | (Q(above__gte=0) & ~Q(above_currency="")),
                name="rule_threshold_currency",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group}: {self.get_authority_display()} × {self.quorum}"


class ApprovalLimit(models.Model):
    """Up to which amount a person may agree. No row: no personal limit."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="approval_limit")
    amount = models.DecimalField(_("limit"), max_digits=18, decimal_places=3)
    currency = models.CharField(_("currency"), max_length=3, choices=CURRENCY_CHOICES)

    class Meta:
        verbose_name = _("approval limit")
        verbose_name_plural = _("approval limits")
        constraints = [
            models.CheckConstraint(condition=Q(amount__gte=0), name="limit_not_negative")
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.amount} {self.currency}"


class ApprovalStep(models.Model):
    """One agreement asked for one revision. Bound to the revision's id and to the hash of its content and plan."""

    Status = StepStatus
    TRANSITIONS = transitions(STEP_RULES)

    revision = models.ForeignKey(RequestRevision, on_delete=models.PROTECT, related_name="steps")
    content_hash = models.CharField(max_length=64)
    group = models.PositiveSmallIntegerField(_("group"))
    authority = models.CharField(_("who"), max_length=16, choices=Authority.choices)
    quorum = models.PositiveSmallIntegerField(_("votes needed"), default=1)
    status = models.CharField(
        _("state"), max_length=10, choices=StepStatus.choices, default=StepStatus.WAITING
    )
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(default=timezone.now)
    opened_at = models.DateTimeField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    escalated_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("approval step")
        verbose_name_plural = _("approval steps")
        ordering = ["revision_id", "group", "id"]
        indexes = [models.Index(fields=["status"], name="step_status")]

    def __str__(self) -> str:
        return f"{self.revision} · {self.get_authority_display()}"


class Decision(models.TextChoices):
    APPROVE = "approve", _("Approve")
    RETURN = "return", _("Return for changes")
    REJECT = "reject", _("Reject")


class Vote(models.Model):
    """What one person said on one step, for themself or for the one they stand in for. Append-only."""

    step = models.ForeignKey(ApprovalStep, on_delete=models.PROTECT, related_name="votes")
    voter = models.ForeignKey(User, on_delete=models.PROTECT, related_name="votes")
    principal = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    delegation = models.ForeignKey(
        Delegation, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decision = models.CharField(_("decision"), max_length=8, choices=Decision.choices)
    reason = models.TextField(_("reason"), blank=True)
    content_hash = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)
    # Approval on a condition: up to an amount, and to be ordered by a day.
    cap_amount = models.DecimalField(
        _("up to"), max_digits=18, decimal_places=3, null=True, blank=True
    )
    cap_currency = models.CharField(max_length=3, choices=CURRENCY_CHOICES, blank=True)
    order_by = models.DateField(_("to be ordered by"), null=True, blank=True)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = pgettext_lazy("approval", "vote")
        verbose_name_plural = pgettext_lazy("approval", "votes")
        ordering = ["id"]
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["step", "principal"], name="vote_once_per_principal"),
            models.UniqueConstraint(fields=["step", "voter"], name="vote_once_per_voter"),
            models.CheckConstraint(
                condition=Q(cap_amount=None, cap_currency="")
                | (Q(cap_amount__gt=0) & ~Q(cap_currency="")),
                name="vote_cap_currency",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.step} · {self.voter} · {self.decision}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnlyError("Votes are never changed")
        super().save(*args, **kwargs)

    @property
    def cap(self) -> Money | None:
        """Up to which amount this vote agrees; None: the plan's."""
        return None if self.cap_amount is None else Money(self.cap_amount, self.cap_currency)


class OverApproval(models.Model):
    """An approver agreed, with a reason, that orders for a revision may go up to an amount above what was approved."""

    revision = models.ForeignKey(
        RequestRevision, on_delete=models.PROTECT, related_name="over_approvals"
    )
    amount = models.DecimalField(_("up to"), max_digits=18, decimal_places=6)
    currency = models.CharField(_("currency"), max_length=3, choices=CURRENCY_CHOICES)
    approved_amount = models.DecimalField(
        _("approved"), max_digits=18, decimal_places=6
    )  # as it was then, in the same currency
    reason = models.TextField(_("reason"))
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = _("over-approval")
        verbose_name_plural = _("over-approvals")
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="over_approval_has_reason")
        ]

    def __str__(self) -> str:
        return f"{self.revision} · {Money(self.amount, self.currency)}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnlyError("Over-approvals are never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError("Over-approvals are never deleted")
