"""The burn-in of one card: the checklist it follows, the run, and what was found on each item."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from core.machines import transitions
from core.models import User
from core.organisation import today
from procurement.models.assets import Asset, AssetKind
from procurement.models.base import Versioned, within_teams
from procurement.models.deliveries import Delivery
from procurement.models.evidence import EvidenceFile
from procurement.models.orders import PurchaseOrder
from procurement.states import BURN_IN_RULES, BurnInStatus


class Weight(models.TextChoices):
    """How much an item decides."""

    BLOCKING = "blocking", _("Blocking")
    REVIEW = "review", _("For review")
    INFORMATION = "information", _("For information")


class DecidedBy(models.TextChoices):
    """What an item's result comes from."""

    PERSON = "person", _("A person")
    EVIDENCE = "evidence", _("Evidence files")
    EITHER = "either", _("Evidence files, else a person")
    DURATION = "duration", _("Hours covered by evidence")
    SERIAL = "serial", _("The vendor's packing list")
    PROMISE = "promise", _("Promised against measured throughput")


INSTANCE = "instance"  # a cloud instance: no unit with a serial number of ours
KIND_CHOICES = [*AssetKind.choices, (INSTANCE, _("Cloud instance"))]


class ChecklistTemplate(models.Model):
    """One version of a checklist for one kind of unit. Never changed: a new version is made beside it.

    Shipped ones have no order. A contract's is a copy of a shipped one (`base`), as it was when the order was drafted,
    and each change of it is a further version until the order is issued.
    """

    slug = models.SlugField(_("name"), max_length=40)
    version = models.PositiveSmallIntegerField(_("version"))
    asset_kind = models.CharField(_("for"), max_length=12, choices=KIND_CHOICES)
    title = models.CharField(_("title"), max_length=160)
    title_zh = models.CharField(_("title (Chinese)"), max_length=160)
    source = models.CharField(_("source"), max_length=200)
    order = models.ForeignKey(
        PurchaseOrder, on_delete=models.CASCADE, null=True, related_name="checklists"
    )
    base = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(default=timezone.now)
    reason = models.TextField(_("reason"), blank=True)  # of the change that made this version

    class Meta:
        verbose_name = _("checklist template")
        verbose_name_plural = _("checklist templates")
        ordering = ["slug", "-version"]
        constraints = [
            models.UniqueConstraint(
                fields=["slug", "version"],
                condition=Q(order=None),
                name="checklist_version_once",
            ),
            models.UniqueConstraint(
                fields=["order", "slug", "version"],
                condition=Q(order__isnull=False),
                name="contract_checklist_version_once",
            ),
        ]

    def __str__(self) -> str:
        title = self.title_zh if (get_language() or "").startswith("zh") else self.title
        return f"{title} v{self.version}"


class ChecklistItem(models.Model):
    """One measurable criterion."""

    template = models.ForeignKey(ChecklistTemplate, on_delete=models.CASCADE, related_name="items")
    code = models.CharField(_("code"), max_length=12)
    position = models.PositiveSmallIntegerField()
    text = models.CharField(_("item"), max_length=200)
    text_zh = models.CharField(_("item (Chinese)"), max_length=200)
    criterion = models.CharField(_("criterion"), max_length=300)
    criterion_zh = models.CharField(_("criterion (Chinese)"), max_length=300)
    evidence = models.CharField(_("evidence"), max_length=120, blank=True)
    evidence_zh = models.CharField(_("evidence (Chinese)"), max_length=120, blank=True)
    weight = models.CharField(_("weight"), max_length=12, choices=Weight.choices)
    decided_by = models.CharField(_("decided by"), max_length=10, choices=DecidedBy.choices)
    formats = models.JSONField(default=list, blank=True)  # evidence formats that decide it
    rules = models.JSONField(default=list, blank=True)  # rules of those readers; empty: the verdict

    class Meta:
        verbose_name = _("checklist item")
        verbose_name_plural = _("checklist items")
        ordering = ["template_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["template", "code"], name="checklist_item_once")
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.local_text}"

    @property
    def local_text(self) -> str:
        return self.text_zh if (get_language() or "").startswith("zh") else self.text

    @property
    def local_evidence(self) -> str:
        return self.evidence_zh if (get_language() or "").startswith("zh") else self.evidence

    @property
    def local_criterion(self) -> str:
        return self.criterion_zh if (get_language() or "").startswith("zh") else self.criterion


class BurnInQuerySet(models.QuerySet["BurnInRun"]):
    def visible_to(self, user: User) -> BurnInQuerySet:
        return within_teams(self, user, "delivery__order__lines__request")  # type: ignore[no-any-return]


class BurnInRun(Versioned):
    """One attempt at burning in one unit. A further attempt is a new run; the old one stays."""

    Status = BurnInStatus
    TRANSITIONS = transitions(BURN_IN_RULES)
    RULES = BURN_IN_RULES

    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="runs")
    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="runs")
    template = models.ForeignKey(ChecklistTemplate, on_delete=models.PROTECT, related_name="+")
    attempt = models.PositiveSmallIntegerField(_("attempt"), default=1)
    status = models.CharField(
        _("state"), max_length=12, choices=BurnInStatus.choices, default=BurnInStatus.RUNNING
    )
    operator = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="+", verbose_name=_("operator")
    )
    required_seconds = models.PositiveIntegerField()
    covered_seconds = models.PositiveIntegerField(default=0)  # longest stretch proven by evidence
    started_at = models.DateTimeField(_("started"), default=timezone.now)
    clock_from = models.DateTimeField(default=timezone.now)  # evidence taken before does not count
    ended_at = models.DateTimeField(_("ended"), null=True)
    reason = models.TextField(_("reason"), blank=True)

    objects = BurnInQuerySet.as_manager()

    class Meta:
        verbose_name = _("burn-in run")
        verbose_name_plural = _("burn-in runs")
        ordering = ["asset_id", "-attempt"]
        constraints = [
            models.UniqueConstraint(fields=["asset", "attempt"], name="burn_in_attempt_once"),
            models.UniqueConstraint(
                fields=["asset"],
                condition=Q(status__in=["running", "interrupted"]),
                name="one_open_burn_in",
            ),
            models.CheckConstraint(
                condition=~Q(status="passed")
                | Q(covered_seconds__gte=models.F("required_seconds")),
                name="passed_burn_in_is_covered",
            ),
        ]

    def __str__(self) -> str:
        return pgettext_lazy("burn-in", "%(serial)s, attempt %(n)s") % {
            "serial": self.asset.serial,
            "n": self.attempt,
        }

    @property
    def trail_label(self) -> str:
        """Its name in the audit trail, which knows no language."""
        return f"{self.asset.serial} #{self.attempt}"

    def get_absolute_url(self) -> str:
        return reverse("delivery-burn-in", args=[self.delivery_id])

    @property
    def covered_share(self) -> float:
        """Share of the required time that evidence covers, at most 1; 1 where no time is required. [1]"""
        if not self.required_seconds:
            return 1.0
        return min(self.covered_seconds / self.required_seconds, 1.0)

    @property
    def covered_hours(self) -> str:
        """To the tenth, rounded down: 71.99 h are not 72."""
        return f"{self.covered_seconds // 360 / 10:.1f}"

    @property
    def required_hours(self) -> str:
        return f"{self.required_seconds // 360 / 10:g}"


class ItemResult(models.TextChoices):
    OPEN = "open", pgettext_lazy("checklist", "Open")
    PASS = "pass", pgettext_lazy("checklist", "Pass")
    FAIL = "fail", pgettext_lazy("checklist", "Fail")
    REVIEW = "review", _("To be looked at")
    NOT_APPLICABLE = "na", _("Not applicable")
    WAIVED = "waived", _("Waived")


class RunItem(models.Model):
    """What was found on one item in one run."""

    run = models.ForeignKey(BurnInRun, on_delete=models.CASCADE, related_name="items")
    item = models.ForeignKey(ChecklistItem, on_delete=models.PROTECT, related_name="+")
    result = models.CharField(
        _("result"), max_length=8, choices=ItemResult.choices, default=ItemResult.OPEN
    )
    value = models.CharField(_("measured"), max_length=120, blank=True)
    note = models.TextField(_("note"), blank=True)
    evidence = models.ForeignKey(
        EvidenceFile, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decided_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    expires_on = models.DateField(_("waived until"), null=True)  # of a waiver; null: for good

    class Meta:
        verbose_name = _("checklist result")
        verbose_name_plural = _("checklist results")
        ordering = ["run_id", "item__position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "item"], name="run_item_once"),
            models.CheckConstraint(
                condition=~Q(result__in=["na", "waived"]) | ~Q(note=""), name="run_item_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.item_id} {self.result}"

    @property
    def is_settled(self) -> bool:
        if self.result == ItemResult.WAIVED and self.expires_on is not None:
            return self.expires_on >= today()
        return self.result in (ItemResult.PASS, ItemResult.NOT_APPLICABLE, ItemResult.WAIVED)
