"""Files that prove something, what a reader found in them, and to which unit each finding belongs."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.models import Job, StoredFile, User
from procurement.format_names import format_name
from procurement.models.assets import Asset
from procurement.models.base import Versioned, within_teams
from procurement.models.deliveries import Delivery


class EvidenceState(models.TextChoices):
    """How far reading has come. The verdict is another matter."""

    WAITING = "waiting", _("Waiting to be read")
    READ = "read", pgettext_lazy("evidence", "Read")


class VerdictChoice(models.TextChoices):
    """As procurement.evidence.types.Verdict."""

    PASS = "pass", pgettext_lazy("verdict", "Pass")
    WARN = "warn", _("A person must look")
    NOT_TESTED = "not_tested", _("Not tested")
    INCONCLUSIVE = "inconclusive", _("Inconclusive")
    RETEST = "retest", _("Test again")
    FAIL = "fail", pgettext_lazy("verdict", "Fail")
    REJECT = "reject", pgettext_lazy("verdict", "Rejected")
    NOT_APPLICABLE = "n/a", pgettext_lazy("verdict", "No verdict")


class EvidenceQuerySet(models.QuerySet["EvidenceFile"]):
    def visible_to(self, user: User) -> EvidenceQuerySet:
        return within_teams(self, user, "delivery__order__lines__request")  # type: ignore[no-any-return]


class EvidenceFile(Versioned):
    """One file, uploaded for one delivery (and one server, when named). Its bytes and hash never change."""

    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="evidence")
    node = models.ForeignKey(
        Asset, on_delete=models.PROTECT, null=True, blank=True, related_name="+",
        verbose_name=_("of server"),
    )  # fmt: skip
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, related_name="+")
    sha256 = models.CharField(max_length=64, db_index=True)
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")
    state = models.CharField(
        max_length=8, choices=EvidenceState.choices, default=EvidenceState.WAITING
    )
    format = models.CharField(_("format"), max_length=60, blank=True)
    verdict = models.CharField(
        _("verdict"), max_length=12, choices=VerdictChoice.choices, blank=True
    )
    result = models.JSONField(null=True)  # procurement.evidence.types.Evidence.to_json
    flags = models.JSONField(
        default=list
    )  # core.messages.Message each: what is wrong with the file
    policy_version = models.CharField(max_length=60, blank=True)
    reader_version = models.CharField(max_length=20, blank=True)
    read_at = models.DateTimeField(null=True)
    altered_at = models.DateTimeField(null=True)  # when the check first found other bytes on disk
    locked_at = models.DateTimeField(null=True)  # once an acceptance or an RMA rests on it

    objects = EvidenceQuerySet.as_manager()

    class Meta:
        verbose_name = _("evidence file")
        verbose_name_plural = _("evidence files")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["delivery", "node", "sha256"],
                condition=Q(node__isnull=False),
                name="evidence_once_per_server",
            ),
            models.UniqueConstraint(
                fields=["delivery", "sha256"],
                condition=Q(node__isnull=True),
                name="evidence_once_per_delivery",
            ),
        ]

    def __str__(self) -> str:
        return self.file.name

    def get_absolute_url(self) -> str:
        return reverse("evidence-detail", args=[self.pk])

    @property
    def format_name(self) -> str:
        """The format as people call it."""
        return format_name(self.format)


class UnitVerdict(models.Model):
    """What one file says about one delivered unit, bound by serial number or UUID, never by index."""

    evidence = models.ForeignKey(EvidenceFile, on_delete=models.CASCADE, related_name="verdicts")
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="verdicts")
    bound_by = models.CharField(
        max_length=10
    )  # serial, uuid, or server: the one the file was uploaded for
    verdict = models.CharField(max_length=12, choices=VerdictChoice.choices)
    reasons = models.JSONField(default=list)  # procurement.evidence.types.Reason.to_json each
    figures = models.JSONField(default=dict)
    covered_seconds = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = pgettext_lazy("evidence", "verdict")
        verbose_name_plural = pgettext_lazy("evidence", "verdicts")
        ordering = ["evidence_id", "asset__serial"]
        constraints = [
            models.UniqueConstraint(fields=["evidence", "asset"], name="unit_verdict_once")
        ]

    def __str__(self) -> str:
        return f"{self.asset} {self.verdict}"

    @property
    def bound_words(self) -> str:
        """How the file and the unit were brought together, in the reader's language."""
        words = {
            "serial": _("bound by serial number"),
            "uuid": _("bound by UUID"),
            "server": _("uploaded for this server"),
        }
        return str(words.get(self.bound_by, self.bound_by))
