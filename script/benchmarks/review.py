"""Benchmark of the review's PDF: about 60 pages and 40 charts against WeasyPrint on the same finished HTML."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

CARD = "nvidia-h100-sxm5-80gb"
LINE = {
    "template": "There are %(cards)s cards, and %(order)s on order.",
    "params": {"cards": 64, "order": 0},
}
PAGES_WANTED = 60
SECONDS_WANTED = 15.0
ALLOWED = 1.15


def _data() -> dict[str, Any]:
    """A snapshot's figures, larger than any demo: 36 forecasts, hundreds of rows."""
    pools = [f"team-{n:02d} · nvidia-h100-sxm5-80gb · owned" for n in range(36)]
    return {
        "schema": "headroom/review-1", "quarter": "2026Q4", "from": "2026-10-01", "until": "2027-01-01",
        "as_of": "2027-01-02T00:00:00+00:00", "currency": "CNY", "organisation": "量子示例科技有限公司",
        "requests": [
            {"reference": f"R-{n:04d}", "title": f"训练平台扩容 {n} training", "team": f"team {n % 36}", "kind": "lora",
             "status": "approved", "since": "2026-11-01T00:00:00+00:00", "cards": n % 64, "accelerator": CARD,
             "mode": "owned", "amount": f"{n * 1000}.00"}
            for n in range(700)
        ],
        "demand": [
            {"team": f"team {n}", "kind": "lora", "requests": 3, "cards": n, "without_plan": 0, "amount": "1000.00"}
            for n in range(36)
        ],
        "budgets": [], "orders": [], "ordered_total": "0.00", "cards": [], "card_states": {}, "verdicts": {},
        "vendors": [], "open_rfqs": 0, "open_rmas": 0, "holes": [],
        "use": [
            {"team": f"team {n}", "accelerator": "nvidia-h100-sxm5-80gb", "ownership": "owned", "idle": 1, "cards": 64,
             "utilization": 0.6, "memory": 0.5, "energy_kwh": 90000.0, "covered": 0.98}
            for n in range(400)
        ],
        "use_days": [
            [(date(2026, 10, 1) + timedelta(days=n)).isoformat(), 0.5 + 0.002 * (n % 40), 0.6] for n in range(92)
        ],
        "use_total": {}, "idle_owned": 3, "cost_per_useful_hour": "18.40",
        "queues": [
            {"team": f"team {n}", "jobs": 100, "mean": 600.0, "p50": 300.0, "p90": 4000.0, "longest": 90000.0,
             "interrupted": 1, "mfu": None}
            for n in range(36)
        ],
        "supply": [
            {"accelerator": f"card-{n}", "delivered": 64, "in_service": 60, "owned": 60, "reserved": 8, "cloud": 4,
             "on_order": 8, "promised": "2027-02-01"}
            for n in range(20)
        ],
        "forecast": [
            {"pool": pool, "accelerator": "nvidia-h100-sxm5-80gb", "busy": 40.0 + n, "low": 35.0, "high": 50.0 + n,
             "peak": 55.0, "error": 0.06, "tests": 12, "past": [30.0 + (w * n) % 9 for w in range(26)],
             "weeks": [40.0 + w / 3 for w in range(13)]}
            for n, pool in enumerate(pools)
        ],
        "recommendations": [
            {"pool": pool, "accelerator": CARD, "ownership": "owned", "cards": 64, "utilization": 0.6,
             "action": "grow", "change": 8, "to": "", "waiting": "250000.00",
             "lines": [LINE]}
            for pool in pools
        ],
        "calibration": [], "calibration_version": 2,
    }  # fmt: skip


def review_pdf_ratio() -> dict[str, float | str]:
    """Seconds of making the pack (charts drawn, HTML, PDF, attachments) over WeasyPrint's for the finished HTML."""
    import io

    import weasyprint
    from django.template.loader import render_to_string
    from django.utils import timezone, translation
    from pypdf import PdfReader

    from core import pdf
    from core.models import Organisation
    from planning import review_use
    from planning.review_report import TEMPLATE, attachments_of, pack_context

    review_use.MOST_CHARTS = 36
    data = _data()
    made = datetime(2027, 1, 2, tzinfo=UTC)
    sender = Organisation(
        name="Quanta", legal_name="量子示例科技有限公司", time_zone="Asia/Shanghai"
    )

    def context() -> dict[str, Any]:
        return pack_context(
            data, number=1, data_hash="0" * 64, languages=["zh-hans"], zone=sender.zone
        )

    def product() -> bytes:
        found = context()
        return pdf.render_pdf(
            TEMPLATE, found, "zh-hans", made_at=made, letterhead=sender,
            attachments=attachments_of(data, found["pack"].title),
        )  # fmt: skip

    begin = time.perf_counter()
    content = product()
    ours = time.perf_counter() - begin
    found = context()
    with translation.override("zh-hans"), timezone.override(sender.zone):
        html = render_to_string(
            TEMPLATE,
            {**found, "letterhead": sender, "made_at": made, "made_at_iso": ""},
        )
    begin = time.perf_counter()
    weasyprint.HTML(string=html, base_url="static:/", url_fetcher=pdf.StaticFilesOnly()).write_pdf(
        pdf_variant="pdf/ua-1"
    )
    plain = time.perf_counter() - begin
    pages = len(PdfReader(io.BytesIO(content)).pages)
    drawn = sum(len(section.charts) for section in found["pack"].sections)
    return {
        "value": round(ours, 2), "unit": "s", "baseline": round(plain, 2), "ratio": round(ours / plain, 3),
        "baseline_is": "WeasyPrint alone on the finished HTML of the same pack",
        "note": f"{pages} pages, {drawn} charts; asked for: {ALLOWED} ×, {SECONDS_WANTED} s, {PAGES_WANTED} pages",
    }  # fmt: skip


BENCHMARKS = {"review_pdf_ratio": review_pdf_ratio}
