"""Forms of the catalogue: figures in the units people quote, turned into SI for the services."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from catalog.display import DTYPES, INTEGER_DTYPES
from catalog.models import Confidence, PriceImport, ServerPlatform
from core.imports import ENCODINGS
from core.models import CURRENCY_CHOICES


class CorrectionForm(forms.Form):
    """Why, from where, and how far known; the figures come from the subclass."""

    # field → (name of the figure, factor to SI)
    SCALES: dict[str, tuple[str, float]] = {}

    reason = forms.CharField(label=_("Reason"), widget=forms.Textarea(attrs={"rows": 2}))
    source = forms.CharField(label=_("Source"), max_length=400)
    source_url = forms.URLField(
        label=_("Address of the source"), required=False, assume_scheme="https"
    )
    as_of = forms.DateField(label=_("As of"), widget=forms.DateInput(attrs={"type": "date"}))
    confidence = forms.ChoiceField(label=_("Confidence"), choices=Confidence.choices)
    seen = forms.IntegerField(widget=forms.HiddenInput)

    ABOUT = ("reason", "source", "source_url", "as_of", "confidence")

    def __init__(self, *args: Any, spec: Any, **kwargs: Any) -> None:
        self.spec = spec
        super().__init__(*args, **kwargs)
        self.fields["seen"].initial = spec.number
        for name, (figure, factor) in self.SCALES.items():
            value = getattr(spec, figure)
            self.fields[name].initial = None if value is None else _tidy(value / factor)
        self.order_fields([name for name in self.fields if name not in (*self.ABOUT, "seen")])

    @property
    def figure_names(self) -> list[str]:
        return [name for name in self.fields if name not in (*self.ABOUT, "seen")]

    def changes(self) -> dict[str, Any]:
        """The figures that the person changed, in SI units."""
        changed = {}
        for name, (figure, factor) in self.SCALES.items():
            if name in self.changed_data:
                value = self.cleaned_data[name]
                whole = isinstance(self.fields[name], forms.IntegerField) and factor == 1
                changed[figure] = None if value is None else int(value) if whole else value * factor
        return changed

    def about(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in (*self.ABOUT, "seen")}


def _tidy(value: float) -> float | int:
    """Without the noise of a division: 989.4000000000001 is 989.4."""
    rounded = float(f"{value:.10g}")
    return int(rounded) if rounded.is_integer() else rounded


def _number(label: Any, unit: Any, *, whole: bool = False, required: bool = False) -> Any:
    kind: Any = forms.IntegerField if whole else forms.FloatField
    field = kind(label=label, required=required, min_value=0)
    field.unit = unit  # drawn beside the input by components/field.html
    return field


class AcceleratorCorrectionForm(CorrectionForm):
    SCALES = {
        "memory_gb": ("hbm_bytes", 1e9),
        "bandwidth_gb": ("hbm_bandwidth", 1e9),
        "link_gb": ("link_bandwidth", 1e9),
        "pcie_gb": ("pcie_bandwidth", 1e9),
        "tdp_w": ("tdp", 1.0),
    }
    memory_gb = _number(_("Memory"), "GB", required=True)
    bandwidth_gb = _number(_("Memory bandwidth"), "GB/s")
    link_gb = _number(_("Link bandwidth, both directions"), "GB/s")
    pcie_gb = _number(_("PCIe bandwidth, one direction"), "GB/s")
    tdp_w = _number(_("Thermal design power"), "W")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for dtype in DTYPES:
            field = _number(
                _("%(dtype)s dense") % {"dtype": dtype.upper()},
                "TOPS" if dtype in INTEGER_DTYPES else "TFLOPS",
            )
            held = self.spec.peak_flops.get(dtype)
            field.initial = None if held is None else _tidy(held / 1e12)
            self.fields[f"rate_{dtype}"] = field

    def changes(self) -> dict[str, Any]:
        changed = super().changes()
        rates = dict(self.spec.peak_flops)
        for dtype in DTYPES:
            if f"rate_{dtype}" in self.changed_data:
                value = self.cleaned_data[f"rate_{dtype}"]
                if value is None:
                    rates.pop(dtype, None)
                else:
                    rates[dtype] = value * 1e12
        if rates != self.spec.peak_flops:
            changed["peak_flops"] = rates
        return changed


class ModelCorrectionForm(CorrectionForm):
    SCALES = {
        name: (name, 1)
        for name in (
            "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "max_context", "params_total",
            "params_active",
        )
    }  # fmt: skip
    layers = _number(_("Layers"), "", whole=True)
    hidden = _number(_("Hidden size"), "", whole=True)
    heads = _number(_("Attention heads"), "", whole=True)
    kv_heads = _number(_("Key/value heads"), "", whole=True)
    head_dim = _number(_("Head width"), "", whole=True)
    ffn = _number(_("Feed-forward width"), "", whole=True)
    vocab = _number(_("Vocabulary"), "", whole=True)
    max_context = _number(_("Longest context"), _("tokens"), whole=True)
    params_total = _number(_("Parameters"), "", whole=True, required=True)
    params_active = _number(_("Parameters per token"), "", whole=True, required=True)


class PlatformCorrectionForm(CorrectionForm):
    SCALES = {
        "max_power_kw": ("max_power", 1e3),
        "typical_low_kw": ("typical_power_low", 1e3),
        "typical_high_kw": ("typical_power_high", 1e3),
        "rack_u": ("rack_units", 1.0),
        "weight_kg": ("weight", 1.0),
    }
    max_power_kw = _number(_("Highest power"), "kW")
    typical_low_kw = _number(_("Usual power, from"), "kW")
    typical_high_kw = _number(_("Usual power, to"), "kW")
    rack_u = _number(_("Rack units"), "U")
    weight_kg = _number(_("Weight"), "kg")


class TcoCorrectionForm(CorrectionForm):
    """Three numbers, or three series of equal length."""

    low = forms.CharField(label=_("Low"))
    value = forms.CharField(label=_("Default"))
    high = forms.CharField(label=_("High"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("low", "value", "high"):
            held = getattr(self.spec, name)
            self.fields[name].initial = (
                " / ".join(str(number) for number in held) if isinstance(held, list) else str(held)
            )
            if isinstance(held, list):
                self.fields[name].help_text = _("One number a year or tier, separated by /.")

    def clean(self) -> dict[str, Any]:
        for name in ("low", "value", "high"):
            text = self.cleaned_data.get(name)
            if text is None:
                continue
            try:
                numbers = [float(part) for part in text.split("/")]
            except ValueError:
                self.add_error(name, _("Enter a number."))
                continue
            series = isinstance(getattr(self.spec, name), list)
            self.cleaned_data[name] = numbers if series or len(numbers) > 1 else numbers[0]
        return self.cleaned_data

    def changes(self) -> dict[str, Any]:
        return {
            name: self.cleaned_data[name]
            for name in ("low", "value", "high")
            if name in self.changed_data
        }


class LeaseForm(forms.Form):
    """What a lessor asks for one server."""

    platform = forms.ModelChoiceField(
        ServerPlatform.objects.all(), to_field_name="slug", label=_("Server platform")
    )
    lessor = forms.CharField(label=_("Lessor"), max_length=120)
    monthly = forms.DecimalField(
        label=_("Rate of a server and month"), max_digits=18, decimal_places=2, help_text=_("Before tax.")
    )  # fmt: skip
    currency = forms.ChoiceField(label=_("Currency"), choices=CURRENCY_CHOICES)
    term_months = forms.IntegerField(label=_("Term in months"))
    deposit = forms.DecimalField(
        label=_("Deposit of a server"), required=False, max_digits=18, decimal_places=2,
        help_text=_("Comes back at the end. Empty: not quoted."),
    )  # fmt: skip
    buyout = forms.DecimalField(
        label=_("Price to keep a server"), required=False, max_digits=18, decimal_places=2,
        help_text=_("At the end of the term. Empty: not quoted."),
    )  # fmt: skip
    as_of = forms.DateField(label=_("As of"), widget=forms.DateInput(attrs={"type": "date"}))
    valid_until = forms.DateField(
        label=_("Valid until (last day)"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )  # fmt: skip
    source = forms.CharField(
        label=_("Source"), max_length=400, help_text=_("For example the number of the quotation.")
    )

    def quotation(self) -> dict[str, Any]:
        """Keywords of the service."""
        return {**self.cleaned_data, "platform": self.cleaned_data["platform"].slug}


class RateForm(forms.Form):
    """One `base` costs `rate` of `quote`."""

    base = forms.ChoiceField(label=_("One unit of"), choices=CURRENCY_CHOICES, initial="USD")
    quote = forms.ChoiceField(label=_("Costs in"), choices=CURRENCY_CHOICES, initial="CNY")
    rate = forms.DecimalField(label=_("Rate"), max_digits=18, decimal_places=8, min_value=0)
    as_of = forms.DateField(label=_("As of"), widget=forms.DateInput(attrs={"type": "date"}))
    source = forms.CharField(label=_("Source"), max_length=200)


class PriceImportForm(forms.Form):
    target = forms.ChoiceField(label=_("What the file holds"), choices=PriceImport.Target.choices)
    file = forms.FileField(label=_("CSV or XLSX file"))


class EncodingForm(forms.Form):
    """Which reading is right, of those that the file allows."""

    encoding = forms.ChoiceField(label=_("Encoding"), widget=forms.RadioSelect)

    def __init__(self, *args: Any, samples: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["encoding"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - narrows the type
        field.choices = [(name, ENCODINGS[name]) for name in samples]
