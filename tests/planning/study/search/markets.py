"""Small markets whose answers can be told by hand, and the shipped one."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache

from core.messages import Message
from core.money import ExchangeRate, Money
from planning import reference
from planning.economics.types import Offer, PaymentMode, ServerPlatform
from planning.services.snapshots import shipped_snapshot
from planning.study.model import known_model
from planning.study.request import parse_request
from planning.study.search.run import Setting, run_study
from planning.study.search.snapshot import IdleStock, Platform, Snapshot

ON = date(2026, 11, 30)
H100, A100, L40S = "nvidia-h100-sxm5-80gb", "nvidia-a100-sxm4-80gb", "nvidia-l40s"
RATE = ExchangeRate("USD", "CNY", Decimal("7"), date(2026, 11, 1), "test")


def offer(slug: str = H100, price: str = "24", **fields) -> Offer:
    values = {
        "provider": "cloud", "region": "us-east-1", "instance": f"8x-{slug}", "accelerator": slug, "accelerators": 8,
        "mode": PaymentMode.ON_DEMAND, "price": Money(Decimal(price), "USD"), "as_of": date(2026, 10, 1),
        "source": "price list",
    }  # fmt: skip
    return Offer(**{**values, **fields})


def platform(slug: str = H100, price: str = "320000") -> Platform:
    server = ServerPlatform(
        f"hgx-{slug}", "HGX", slug, 8, Money(Decimal(price), "USD"), max_power_kw=10.2, rack_units=8
    )
    return Platform(server, Decimal(price), Decimal(price), date(2026, 10, 1), "quotation")


def market(
    *offers: Offer, platforms=(), stock=(), slugs=(H100, A100), rates=(RATE,), notes=None
) -> Snapshot:
    cards = reference.accelerators()
    return Snapshot(
        on=ON,
        accelerators=tuple(cards[slug] for slug in sorted(slugs)),
        offers=offers,
        platforms=tuple(platforms),
        rates=tuple(rates),
        stock=tuple(stock),
        export_notes=notes,
        as_of=date(2026, 10, 1),
        origin="test",
    )


def idle(cards: int = 16, slug: str = H100) -> IdleStock:
    return IdleStock(slug, cards, cards, "Room 1")


TUNE = {"kind": "finetuning", "model": "llama-3.1-8b", "tokens": "2B", "duration_days": 14}
SERVE = {
    "kind": "online_inference", "model": "llama-3.1-8b", "requests_per_day": "300k", "input_tokens": 600,
    "output_tokens": 150, "latency_class": "chat", "duration_days": 365,
}  # fmt: skip
HOURS = {"kind": "gpu_hours", "gpu_hours": 800, "accelerators": 8}


def study(data: dict, snapshot: Snapshot | None = None, *, currency: str = "USD", seed: int = 1, country="US",
          progress=None) -> dict:  # fmt: skip
    request = parse_request(data)
    known = None if request.model is None else known_model(request.model, reference.resolve_model)
    extra = {} if progress is None else {"progress": progress}
    return run_study(
        request, known, snapshot or shipped(), Setting(currency, seed, country), **extra
    )


@cache
def shipped() -> Snapshot:
    return shipped_snapshot(ON)


def plan(result: dict, role: str) -> dict:
    return next(p for p in result["plans"] if role in p["roles"])


def reasons(result: dict, **fields) -> list[dict]:
    return [r for r in result["exclusions"] if all(r[k] == v for k, v in fields.items())]


def text(message: dict) -> str:
    return str(Message.from_json(message))
