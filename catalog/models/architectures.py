"""Model architectures: the shapes from which memory, compute and cache follow."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from catalog.models.provenance import Origin, Revision


class ModelArchitecture(models.Model):
    """One published model. Its shape is in the revision `current`; `reference` is the one shipped."""

    class Kind(models.TextChoices):
        DECODER = "decoder", _("Decoder")
        ENCODER = "encoder", _("Encoder")
        ENCODER_DECODER = "encoder-decoder", _("Encoder and decoder")
        VISION = "vision-encoder", _("Vision transformer")
        CNN = "cnn", _("Convolutional network")
        DUAL = "dual-encoder", _("Text and image encoders")
        UNET = "diffusion-unet", _("Diffusion (U-Net)")
        DIFFUSION = "diffusion-transformer", _("Diffusion (transformer)")

    slug = models.SlugField(_("short name"), max_length=100, unique=True)
    name = models.CharField(_("name"), max_length=120)
    family = models.CharField(_("family"), max_length=60)
    kind = models.CharField(_("kind"), max_length=24, choices=Kind.choices)
    licence = models.CharField(_("licence of the weights"), max_length=120, blank=True)
    current = models.ForeignKey(
        "ArchitectureSpec", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )
    reference = models.ForeignKey(
        "ArchitectureSpec", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )

    class Meta:
        verbose_name = _("model")
        verbose_name_plural = _("models")
        ordering = ["family", "name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("model-detail", args=[self.slug])


class ArchitectureSpec(Revision):
    """A model's shape as known on a day. Null: not known, or it does not apply to this kind."""

    architecture = models.ForeignKey(
        ModelArchitecture, on_delete=models.PROTECT, related_name="specs"
    )
    layers = models.PositiveIntegerField(_("layers"), null=True, blank=True)
    hidden = models.PositiveIntegerField(_("hidden size"), null=True, blank=True)
    heads = models.PositiveIntegerField(_("attention heads"), null=True, blank=True)
    kv_heads = models.PositiveIntegerField(_("key/value heads"), null=True, blank=True)
    head_dim = models.PositiveIntegerField(_("head width"), null=True, blank=True)
    ffn = models.PositiveIntegerField(_("feed-forward width"), null=True, blank=True)
    vocab = models.PositiveIntegerField(_("vocabulary"), null=True, blank=True)
    max_context = models.PositiveIntegerField(_("longest context"), null=True, blank=True)
    tied_embeddings = models.BooleanField(_("tied embeddings"), null=True, blank=True)
    gated = models.BooleanField(_("gated feed-forward"), null=True, blank=True)
    position_embeddings = models.PositiveIntegerField(_("learned positions"), default=0)
    cross_attention_layers = models.PositiveIntegerField(_("cross-attention layers"), default=0)
    sliding_window = models.PositiveIntegerField(_("attention window"), null=True, blank=True)
    sliding_layers = models.PositiveIntegerField(_("layers with a window"), default=0)
    moe = models.JSONField(_("experts"), null=True, blank=True)
    mla = models.JSONField(_("latent attention"), null=True, blank=True)
    params_total = models.BigIntegerField(_("parameters, published"))
    params_active = models.BigIntegerField(_("parameters per token, published"))
    image_size = models.PositiveIntegerField(_("image size"), null=True, blank=True)
    patch_size = models.PositiveIntegerField(_("patch size"), null=True, blank=True)
    forward_gflop = models.FloatField(_("GFLOP per forward pass"), null=True, blank=True)
    params_computed_total = models.BigIntegerField(
        _("parameters, from the shape"), null=True, blank=True
    )
    params_computed_active = models.BigIntegerField(
        _("parameters per token, from the shape"), null=True, blank=True
    )
    read_fields = models.JSONField(default=list, blank=True)

    FIGURES = (
        "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "max_context", "tied_embeddings", "gated",
        "position_embeddings", "cross_attention_layers", "sliding_window", "sliding_layers", "moe", "mla",
        "params_total", "params_active", "image_size", "patch_size", "forward_gflop", "params_computed_total",
        "params_computed_active", "read_fields",
    )  # fmt: skip

    class Meta:
        verbose_name = _("model shape")
        verbose_name_plural = _("model shapes")
        ordering = ["architecture", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["architecture", "number"], name="architecture_revision"
            ),
            models.CheckConstraint(
                condition=Q(params_total__gt=0, params_active__gt=0)
                & Q(params_active__lte=models.F("params_total")),
                name="architecture_params",
            ),
            models.CheckConstraint(
                condition=Q(origin=Origin.REFERENCE) | ~Q(reason=""),
                name="architecture_correction_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.architecture} · {self.number}"

    @property
    def kv_elements_per_token(self) -> int | None:
        """Cache elements of one more token of context, over all layers; windows not counted off. [elements]"""
        if self.architecture.kind != ModelArchitecture.Kind.DECODER or self.layers is None:
            return None
        if self.mla:
            return self.layers * int(self.mla["kv_latent"] + self.mla["rope_dim"])
        if self.kv_heads is None or self.head_dim is None:
            return None
        return 2 * self.layers * self.kv_heads * self.head_dim

    @property
    def kv_bytes_fp16(self) -> int | None:
        """KV cache of one token at two bytes an element. [B]"""
        elements = self.kv_elements_per_token
        return None if elements is None else 2 * elements

    @property
    def kv_bytes_fp8(self) -> int | None:
        """KV cache of one token at one byte an element. [B]"""
        return self.kv_elements_per_token

    @property
    def weight_bytes_fp16(self) -> int:
        """Weights at two bytes a parameter. [B]"""
        return 2 * self.params_total
