"""Where a row comes from, and how facts are revised without losing what was there before."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from core.models import AppendOnlyError, AppendOnlyQuerySet, User


class Confidence(models.TextChoices):
    """How far a figure is known. `meaning` says it in a sentence."""

    MEASURED = "measured", pgettext_lazy("confidence", "Measured")
    READ = "read", pgettext_lazy("confidence", "Read")
    DERIVED = "derived", pgettext_lazy("confidence", "Derived")
    RECALLED = "recalled", pgettext_lazy("confidence", "Recalled")
    CHOSEN = "chosen", pgettext_lazy("confidence", "Assumed")

    @property
    def meaning(self) -> str:
        return str(
            {
                Confidence.MEASURED: _("Measured by us"),
                Confidence.READ: _("Read in the source"),
                Confidence.DERIVED: _("Derived from figures that were read"),
                Confidence.RECALLED: _("Recalled, not read again"),
                Confidence.CHOSEN: _("Planning assumption"),
            }[self]
        )


class Precision(models.TextChoices):
    """How exactly the source dates itself; `as_of` is the first day of the period."""

    DAY = "day", _("day")
    MONTH = "month", _("month")
    QUARTER = "quarter", _("quarter")
    YEAR = "year", _("year")
    UNDATED = "undated", _("undated")


class Origin(models.TextChoices):
    """Who stated a revision."""

    REFERENCE = "reference", _("Shipped with the product")
    CORRECTION = "correction", _("Corrected by the organisation")


class Provenance(models.Model):
    """Source, date and confidence of one row."""

    source = models.CharField(_("source"), max_length=400)
    source_url = models.URLField(_("address of the source"), max_length=500, blank=True)
    as_of = models.DateField(_("as of"))
    as_of_precision = models.CharField(
        max_length=8, choices=Precision.choices, default=Precision.DAY, editable=False
    )
    confidence = models.CharField(_("confidence"), max_length=10, choices=Confidence.choices)
    notes = models.TextField(_("notes"), blank=True)

    class Meta:
        abstract = True

    @property
    def dated(self) -> str:
        """The date as exactly as the source gives it."""
        match self.as_of_precision:
            case Precision.YEAR:
                return str(self.as_of.year)
            case Precision.QUARTER:
                return f"{self.as_of.year} Q{(self.as_of.month + 2) // 3}"
            case Precision.MONTH:
                return f"{self.as_of:%Y-%m}"
            case Precision.UNDATED:
                return gettext("undated")
        return date_format(self.as_of, "Y-m-d")


class AppendOnlyModel(models.Model):
    """A row that is added once and never changed. The database holds it too (see the migration)."""

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnlyError(f"{type(self).__name__} rows are never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError(f"{type(self).__name__} rows are never deleted")


class Revision(AppendOnlyModel, Provenance):
    """One dated statement of a subject's figures. A correction is the next revision; the first one stays."""

    number = models.PositiveIntegerField(_("revision"))
    origin = models.CharField(_("stated by"), max_length=10, choices=Origin.choices)
    reason = models.TextField(_("reason"), blank=True)
    author = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("who"),
    )
    created_at = models.DateTimeField(_("entered"), default=timezone.now, editable=False)

    # Names of the fields that state figures; the rest is about the statement itself.
    FIGURES: tuple[str, ...] = ()

    class Meta:
        abstract = True

    @property
    def figures(self) -> dict[str, Any]:
        """What this revision states, by field."""
        return {name: getattr(self, name) for name in self.FIGURES}

    @property
    def is_correction(self) -> bool:
        return self.origin == Origin.CORRECTION
