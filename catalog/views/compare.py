"""Two to four accelerators side by side, dense rates first, traps beside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from catalog import display, selectors
from catalog.models import Accelerator
from catalog.tables import ACCELERATORS
from catalog.traps import traps_of
from core.http import SignedInRequest
from core.messages import msg
from core.templatetags.ui import said

LEAST, MOST = 2, 4


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the comparison: what each card shows, and which value is best (None: no better or worse)."""

    label: str
    shown: Callable[[Accelerator], Any]
    figure: Callable[[Accelerator], float | None] | None = None
    best: str = "max"


@require_safe
def accelerator_compare(request: SignedInRequest) -> HttpResponse:
    slugs = list(dict.fromkeys(request.GET.getlist("card")))[: MOST + 1]
    found = selectors.accelerators_by_slug(slugs)
    cards = [found[slug] for slug in slugs if slug in found]
    fits = LEAST <= len(cards) <= MOST
    spans = selectors.price_span() if fits else {}
    context = {
        "cards": cards,
        "fits": fits,
        "rows": [_row(line, cards) for line in _lines(spans)] if fits else [],
        "traps": [(card, traps_of(card.slug)) for card in cards] if fits else [],
        "crumbs": [
            (_("Catalogue"), reverse("catalog-home")),
            (ACCELERATORS.title, reverse("accelerator-list")),
        ],
        "least": LEAST,
        "most": MOST,
    }
    return render(request, "catalog/accelerator_compare.html", context, status=200 if fits else 422)


def _row(line: Line, cards: list[Accelerator]) -> dict[str, Any]:
    values = [line.figure(card) if line.figure else None for card in cards]
    known = [value for value in values if value is not None]
    best = (max if line.best == "max" else min)(known) if len(set(known)) > 1 else None
    return {
        "label": line.label,
        "cells": [
            (*_text(line.shown(card)), value is not None and value == best)
            for card, value in zip(cards, values, strict=True)
        ],
    }


def _text(shown: Any) -> tuple[Any, Any]:
    """What stands large, and what small beside it."""
    return shown if isinstance(shown, tuple) else (shown, "")


def _spec(card: Accelerator, name: str) -> Any:
    return getattr(card.current, name)


def _rate_line(dtype: str) -> Line:
    def dense(card: Accelerator) -> float | None:
        rate: float | None = _spec(card, "peak_flops").get(dtype)
        return rate

    def shown(card: Accelerator) -> Any:
        rate = dense(card)
        if rate is None:
            return None
        marketing = _spec(card, "marketing_flops").get(dtype)
        note = ""
        if marketing is not None:
            note = _("marketing: %(rate)s") % {"rate": display.rate(marketing, dtype)}
        return display.rate(rate, dtype), note

    return Line(_("%(dtype)s dense") % {"dtype": dtype.upper()}, shown, dense)


def _balance(card: Accelerator) -> float | None:
    rate, bandwidth = _spec(card, "peak_flops").get("bf16"), _spec(card, "hbm_bandwidth")
    return rate / bandwidth if rate and bandwidth else None


def _per_watt(card: Accelerator) -> float | None:
    rate, tdp = _spec(card, "peak_flops").get("bf16"), _spec(card, "tdp")
    return rate / tdp if rate and tdp else None


def _lines(spans: dict[int, dict[str, Any]]) -> list[Line]:
    def rent(card: Accelerator) -> Any:
        span = spans.get(card.pk)
        if span is None:
            return None
        return (
            display.span_of_money(span["low"], span["high"], "USD"),
            said(msg("%(n)s offers", n=span["offers"])),
        )

    def lowest(card: Accelerator) -> float | None:
        span = spans.get(card.pk)
        return float(span["low"]) if span else None

    return [
        Line(_("Maker"), lambda card: card.vendor),
        Line(_("Architecture"), lambda card: card.architecture),
        Line(_("Year"), lambda card: str(card.year or "")),
        Line(
            _("Memory"),
            lambda card: (display.gigabytes(_spec(card, "hbm_bytes")), _spec(card, "memory_type")),
            lambda card: _spec(card, "hbm_bytes"),
        ),
        Line(
            _("Memory bandwidth"),
            lambda card: display.bandwidth(_spec(card, "hbm_bandwidth")),
            lambda card: _spec(card, "hbm_bandwidth"),
        ),
        *(_rate_line(dtype) for dtype in ("tf32", "fp16", "bf16", "fp8", "int8", "fp4")),
        Line(
            _("Link, both directions"),
            lambda card: (
                display.bandwidth(_spec(card, "link_bandwidth")),
                _spec(card, "link_name") or _("PCIe only"),
            ),
            lambda card: _spec(card, "link_bandwidth"),
        ),
        Line(
            _("PCIe, one direction"),
            lambda card: display.bandwidth(_spec(card, "pcie_bandwidth")),
            lambda card: _spec(card, "pcie_bandwidth"),
        ),
        Line(
            _("Thermal design power"),
            lambda card: display.watts(_spec(card, "tdp")),
            lambda card: _spec(card, "tdp"),
            best="min",
        ),
        Line(
            _("BF16 rate per watt"),
            lambda card: display.quantity(_per_watt(card), 1e12, "TFLOPS/W"),
            _per_watt,
        ),
        Line(
            _("BF16 operations per byte read"),
            lambda card: None if (value := _balance(card)) is None else display.plain(value, 0),
        ),
        Line(_("On demand, per accelerator-hour"), rent, lowest, best="min"),
        Line(_("Export rules"), lambda card: _spec(card, "export_note")),
        Line(_("Confidence"), lambda card: display.confidence(card.current)),
        Line(_("Source"), lambda card: display.source(card.current)),
    ]
