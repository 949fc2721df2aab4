"""How likely what is asked for comes to be approved: what is assumed before history tells."""

from __future__ import annotations

from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from planning.states import RequestStatus

STAGES = (RequestStatus.SUBMITTED, RequestStatus.IN_REVIEW, RequestStatus.CHANGES_REQUESTED)
# (share that comes to be approved, how many requests that assumption counts for)
DEFAULTS: dict[str, tuple[Decimal, int]] = {
    RequestStatus.SUBMITTED: (Decimal("0.5"), 10),
    RequestStatus.IN_REVIEW: (Decimal("0.7"), 10),
    RequestStatus.CHANGES_REQUESTED: (Decimal("0.3"), 10),
}


class StagePrior(models.Model):
    """The assumption for one stage; without a row that of DEFAULTS."""

    stage = models.CharField(
        _("state"), max_length=20, unique=True,
        choices=[(stage.value, stage.label) for stage in STAGES],
    )  # fmt: skip
    share = models.DecimalField(_("assumed share"), max_digits=4, decimal_places=3)
    weight = models.PositiveIntegerField(_("counts for so many requests"))
    version = models.PositiveIntegerField(default=0, editable=False)  # 0: never changed

    class Meta:
        verbose_name = _("assumed share of a stage")
        verbose_name_plural = _("assumed shares of stages")
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=Q(share__range=(0, 1)), name="stage_prior_share"),
            models.CheckConstraint(condition=Q(weight__gte=1), name="stage_prior_weight"),
        ]

    def __str__(self) -> str:
        return self.get_stage_display()
