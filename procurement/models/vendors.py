"""Who sells."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Lower
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.machines import transitions
from core.models import LANGUAGE_CHOICES, StoredFile, User, validate_zone
from core.organisation import today
from core.roles import has_role_anywhere
from procurement.models.base import BUYING_ROLES, Versioned, currency_field, sees_everything
from procurement.states import VENDOR_RULES, VendorStatus

SOON_DAYS = 60  # before a document runs out it is marked [d]


class Channel(models.TextChoices):
    """What kind of seller: each has its own traps."""

    CLOUD = "cloud", _("Cloud provider")
    INTEGRATOR = "integrator", _("Integrator")
    MAKER = "maker", _("Maker")


class VendorQuerySet(models.QuerySet["Vendor"]):
    def visible_to(self, user: User) -> VendorQuerySet:
        """The register is for those who take part in buying."""
        if sees_everything(user) or has_role_anywhere(user, *BUYING_ROLES):
            return self
        return self.none()


class Vendor(Versioned):
    """A seller: channel, currency, contacts; blocked with a reason."""

    Status = VendorStatus
    TRANSITIONS = transitions(VENDOR_RULES)
    RULES = VENDOR_RULES

    name = models.CharField(_("name"), max_length=160)
    legal_name = models.CharField(_("legal name"), max_length=240, blank=True)
    channel = models.CharField(_("channel"), max_length=10, choices=Channel.choices)
    currency = currency_field()
    language = models.CharField(
        _("language of letters"), max_length=10, choices=LANGUAGE_CHOICES, default="zh-hans"
    )
    time_zone = models.CharField(
        _("time zone"), max_length=64, default="Asia/Shanghai", validators=[validate_zone],
        help_text=_("Decides when a quote's last day ends."),
    )  # fmt: skip
    tax_number = models.CharField(_("tax number"), max_length=60, blank=True)
    address = models.TextField(_("address"), blank=True)
    payment_terms = models.CharField(_("payment terms"), max_length=200, blank=True)
    notes = models.TextField(_("notes"), blank=True)
    status = models.CharField(
        _("state"), max_length=10, choices=VendorStatus.choices, default=VendorStatus.ACTIVE,
        editable=False,
    )  # fmt: skip
    blocked_reason = models.TextField(_("reason for blocking"), blank=True, editable=False)
    blocked_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, editable=False, related_name="+"
    )

    objects = VendorQuerySet.as_manager()

    class Meta:
        verbose_name = _("vendor")
        verbose_name_plural = _("vendors")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(Lower("name"), name="vendor_name_once"),
            models.CheckConstraint(
                condition=models.Q(status="active") | ~models.Q(blocked_reason=""),
                name="vendor_block_has_reason",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("vendor-detail", args=[self.pk])


class VendorContact(models.Model):
    """A person at a vendor."""

    vendor = models.ForeignKey(Vendor, on_delete=models.CASCADE, related_name="contacts")
    name = models.CharField(_("name"), max_length=120)
    role = models.CharField(_("function"), max_length=80, blank=True)
    email = models.EmailField(_("e-mail"), blank=True)
    phone = models.CharField(_("phone"), max_length=40, blank=True)

    class Meta:
        verbose_name = _("contact")
        verbose_name_plural = _("contacts")
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


class DocumentKind(models.TextChoices):
    CERTIFICATE = "certificate", _("Certificate")
    AUTHORISATION = "authorisation", _("Authorisation by a maker")
    LICENCE = "licence", _("Business licence")
    CONTRACT = "contract", _("Framework contract")
    CONFIDENTIALITY = "confidentiality", _("Confidentiality agreement")
    INSURANCE = "insurance", _("Insurance")
    OTHER = "other", pgettext_lazy("document", "Other")


class VendorDocument(models.Model):
    """A paper of a vendor, kept with its hash, and the day it holds until. A newer one is a new row."""

    vendor = models.ForeignKey(Vendor, on_delete=models.PROTECT, related_name="documents")
    kind = models.CharField(_("kind"), max_length=16, choices=DocumentKind.choices)
    title = models.CharField(_("title"), max_length=160)
    number = models.CharField(_("number"), max_length=80, blank=True)
    issued_on = models.DateField(_("issued on"), null=True, blank=True)
    expires_on = models.DateField(_("holds until (last day)"), null=True, blank=True)
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, null=True, related_name="+")
    added_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    added_at = models.DateTimeField(_("added"), default=timezone.now)
    retired_at = models.DateTimeField(_("out of use since"), null=True)

    class Meta:
        verbose_name = _("document of a vendor")
        verbose_name_plural = _("documents of vendors")
        ordering = ["vendor_id", "kind", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(issued_on=None)
                | models.Q(expires_on=None)
                | models.Q(expires_on__gte=models.F("issued_on")),
                name="vendor_document_days",
            )
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def days_left(self) -> int | None:
        """Days that it still holds; below 0 when it has run out; None when it has no end."""
        return None if self.expires_on is None else (self.expires_on - today()).days

    @property
    def tone(self) -> str:
        """bad: run out; warn: ends within 60 days."""
        left = self.days_left
        return "" if left is None or left > SOON_DAYS else "bad" if left < 0 else "warn"
