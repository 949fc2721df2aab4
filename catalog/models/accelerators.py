"""Accelerators and the dated revisions of what is known of them. SI units, one device as software sees it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from catalog.models.provenance import Origin, Revision


class Accelerator(models.Model):
    """One kind of accelerator. Its figures are in the revision `current`; `reference` is the one shipped."""

    slug = models.SlugField(_("short name"), max_length=100, unique=True)
    name = models.CharField(_("name"), max_length=120)
    vendor = models.CharField(_("maker"), max_length=60)
    generation = models.CharField(_("generation"), max_length=40)  # lower case
    architecture = models.CharField(_("architecture"), max_length=60)
    year = models.PositiveSmallIntegerField(_("year"), null=True, blank=True)
    aliases = models.JSONField(_("also called"), default=list, blank=True)
    devices_per_board = models.PositiveSmallIntegerField(_("devices per board"), default=1)
    current = models.ForeignKey(
        "AcceleratorSpec", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )
    reference = models.ForeignKey(
        "AcceleratorSpec", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )

    class Meta:
        verbose_name = _("accelerator")
        verbose_name_plural = _("accelerators")
        ordering = ["vendor", "name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(devices_per_board__gte=1), name="accelerator_has_devices"
            )
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("accelerator-detail", args=[self.slug])


class AcceleratorSpec(Revision):
    """What was known of an accelerator on a day. Missing is null, never zero."""

    accelerator = models.ForeignKey(Accelerator, on_delete=models.PROTECT, related_name="specs")
    hbm_bytes = models.FloatField(_("memory"))  # [B]
    memory_type = models.CharField(_("memory type"), max_length=20, blank=True)
    hbm_bandwidth = models.FloatField(_("memory bandwidth"), null=True, blank=True)  # [B/s]
    peak_flops = models.JSONField(_("dense rates"), default=dict, blank=True)  # dtype: [FLOP/s]
    marketing_flops = models.JSONField(_("marketing rates"), default=dict, blank=True)
    sparsity_factor = models.FloatField(_("marketing figure ÷ dense rate"), default=1.0)
    tdp = models.FloatField(_("thermal design power"), null=True, blank=True)  # [W]
    form_factor = models.CharField(_("form factor"), max_length=60, blank=True)
    link_name = models.CharField(_("link"), max_length=60, blank=True)
    link_kind = models.CharField(max_length=20, blank=True)
    link_bandwidth = models.FloatField(
        _("link bandwidth, both directions"), null=True, blank=True
    )  # [B/s]
    link_peers = models.PositiveSmallIntegerField(_("cards on a bridge"), null=True, blank=True)
    pcie_bandwidth = models.FloatField(
        _("PCIe bandwidth, one direction"), null=True, blank=True
    )  # [B/s]
    mig_instances = models.PositiveSmallIntegerField(_("partitions"), null=True, blank=True)
    ecc = models.BooleanField(_("ECC"), null=True, blank=True)
    export_note = models.TextField(_("export rules"), blank=True)
    read_fields = models.JSONField(default=list, blank=True)  # read again in a second source

    FIGURES = (
        "hbm_bytes", "memory_type", "hbm_bandwidth", "peak_flops", "marketing_flops", "sparsity_factor", "tdp",
        "form_factor", "link_name", "link_kind", "link_bandwidth", "link_peers", "pcie_bandwidth", "mig_instances",
        "ecc", "export_note", "read_fields",
    )  # fmt: skip

    class Meta:
        verbose_name = _("accelerator figures")
        verbose_name_plural = _("accelerator figures")
        ordering = ["accelerator", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["accelerator", "number"], name="accelerator_revision"),
            models.CheckConstraint(condition=Q(hbm_bytes__gt=0), name="accelerator_memory"),
            models.CheckConstraint(
                condition=Q(hbm_bandwidth__isnull=True) | Q(hbm_bandwidth__gt=0),
                name="accelerator_bandwidth",
            ),
            models.CheckConstraint(
                condition=Q(tdp__isnull=True) | Q(tdp__gt=0), name="accelerator_tdp"
            ),
            models.CheckConstraint(
                condition=Q(sparsity_factor__gte=1), name="accelerator_sparsity"
            ),
            models.CheckConstraint(
                condition=Q(origin=Origin.REFERENCE) | ~Q(reason=""),
                name="accelerator_correction_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.accelerator} · {self.number}"
