"""A vendor's key to one RFQ. Only its hash is kept; it ends with the deadline."""

from __future__ import annotations

import hashlib
from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import User
from procurement.models.rfqs import RfqInvitation


class VendorToken(models.Model):
    """What one invited vendor shows to answer one RFQ. A new one ends the one before."""

    invitation = models.ForeignKey(RfqInvitation, on_delete=models.CASCADE, related_name="tokens")
    token_hash = models.CharField(max_length=64, unique=True)
    issued_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    issued_at = models.DateTimeField(_("issued"), default=timezone.now)
    revoked_at = models.DateTimeField(_("revoked"), null=True)
    last_used_at = models.DateTimeField(_("last used"), null=True)

    class Meta:
        verbose_name = _("vendor's key")
        verbose_name_plural = _("vendors' keys")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["invitation"], condition=Q(revoked_at=None), name="one_vendor_token"
            )
        ]

    def __str__(self) -> str:
        return str(self.invitation)

    @staticmethod
    def hash_of(token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()

    @property
    def ends_at(self) -> datetime:
        """The deadline as it stands: it moves with it."""
        deadline: datetime = self.invitation.rfq.deadline
        return deadline
