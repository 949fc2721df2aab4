"""The component gallery: every component in every state, with the parameters to get it. The reference for pages."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core import charts
from core.http import SignedInRequest
from core.messages import msg
from core.models import AuditEntry, Job
from core.money import Money


class SampleForm(forms.Form):
    """Every kind of field."""

    name = forms.CharField(label="Name", help_text="As it will stand on the order.", max_length=40)
    memory = forms.FloatField(label="Memory", required=False, min_value=0)
    kind = forms.ChoiceField(label="Kind", choices=[("a", "Training"), ("b", "Inference")])
    level = forms.ChoiceField(
        label="Level", widget=forms.RadioSelect, choices=[("l", "Low"), ("h", "High")]
    )
    start = forms.DateField(
        label="Start", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    note = forms.CharField(label="Note", required=False, widget=forms.Textarea)
    proof = forms.FileField(label="Evidence", required=False)
    agreed = forms.BooleanField(label="I have read the terms", required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["memory"].unit = "GB"  # type: ignore[attr-defined]


class SampleFilter(forms.Form):
    """A filter bar."""

    text = forms.CharField(label="Text", required=False)
    state = forms.ChoiceField(
        label="State", required=False, choices=[("", "All"), ("open", "Open")]
    )


def _jobs() -> list[Job]:
    now = timezone.now()
    common = {"key": "study:42", "task": "planning.tasks.run_study", "created_at": now}
    stage = msg("Searching layouts").to_json()
    return [
        Job(**common, status=Job.Status.QUEUED),
        Job(
            **common, status=Job.Status.RUNNING, percent=40, stage=stage, started_at=now - timedelta(seconds=12)
        ),
        Job(
            **common, status=Job.Status.DONE, percent=100, started_at=now - timedelta(seconds=30), finished_at=now
        ),
        Job(
            **common, status=Job.Status.FAILED, percent=70, started_at=now - timedelta(seconds=30), finished_at=now,
            error=msg("This took longer than the limit and was stopped. Try a smaller input.").to_json(),
        ),
    ]  # fmt: skip


def _charts() -> list[charts.Chart]:
    quarters = ("2026Q1", "2026Q2", "2026Q3", "2026Q4")
    return [
        charts.bars(
            title="Yearly cost by plan", description="charts.bars(rows=[(category, series, value)])",
            labels=("Plan", "Kind", "Cost [CNY]"),
            rows=[("Own 8×H100", "Capex", 1.9e6), ("Own 8×H100", "Energy", 3.1e5), ("Reserved", "Rent", 2.6e6),
                  ("On demand", "Rent", 4.4e6)],
        ),
        charts.bars(
            title="Plan and actual", description="charts.bars(stacked=False, horizontal=False)",
            labels=("Quarter", "Kind", "GPU-hours"), stacked=False, horizontal=False,
            rows=[(q, k, v) for q, a, b in zip(quarters, (9e3, 11e3, 12e3, 14e3), (8e3, 11e3, 1e4, None), strict=True)
                  for k, v in (("Plan", a), ("Actual", b))],
        ),
        charts.lines(
            title="Latency over load", description="charts.lines(rows=[(x, series, y, low, high)], limit=…)",
            labels=("Load [req/s]", "Plan", "TTFT [s]"), limit=0.8, limit_label="SLO",
            rows=[(x, s, y * f, y * f * 0.7, y * f * 1.35) for s, f in (("8×H100", 1.0), ("8×L40S", 1.7))
                  for x, y in ((1.0, 0.2), (2.0, 0.22), (4.0, 0.3), (8.0, 0.6))],
        ),
        charts.scatter(
            title="Time against cost", description="charts.scatter(rows=[(name, group, x, y)], frontier=[…])",
            labels=("Plan", "Kind", "Time [days]", "Cost [CNY]"), frontier=["A", "B", "D"],
            rows=[("A", "Own", 10.0, 5e6), ("B", "Rent", 20.0, 3e6), ("C", "Rent", 25.0, 4e6), ("D", "Own", 40.0, 2e6)],
        ),
        charts.areas(
            title="Demand by team", description="charts.areas(rows=[(x, series, value)], limit=…)",
            labels=("Quarter", "Team", "GPUs"), limit=30, limit_label="Installed",
            rows=[(q, t, n * f) for q, n in zip(quarters, (8, 12, 16, 24), strict=True)
                  for t, f in (("Language", 1.0), ("Vision", 0.5))],
        ),
        charts.gantt(
            title="Delivery", description="charts.gantt(rows=[(task, group, first day, day after)], today=…)",
            labels=("Task", "Who", "From", "To"), today=date(2026, 2, 25),
            rows=[("Transport", "Vendor", date(2026, 1, 5), date(2026, 2, 20)),
                  ("Burn-in", "Operations", date(2026, 2, 22), date(2026, 2, 26)),
                  ("Acceptance", "Operations", date(2026, 2, 26), date(2026, 3, 6))],
        ),
        charts.tornado(
            title="What moves the cost", description="charts.tornado(rows=[(factor, low, high)], base=…)",
            labels=("Factor", "Low", "High"), base=1e7, value_label="TCO [CNY]",
            rows=[("MFU", 8e6, 15e6), ("Energy price", 9.5e6, 11e6), ("Uptime", 9e6, 12e6)],
        ),
    ]  # fmt: skip


@require_safe
def gallery(request: SignedInRequest) -> HttpResponse:
    """Every component in every state."""
    at = timezone.now()
    trail = [
        AuditEntry(
            action="job.cancelled", actor=request.user, at=at, object_type="core.job", object_id="1",
            object_label="study:42", from_state="running", to_state="cancelled", reason="A larger budget came in.",
        ),
        AuditEntry(action="rfq.awarded", at=at - timedelta(hours=3), object_label="RFQ-2026-0007"),
    ]  # fmt: skip
    context = {
        "tones": ["neutral", "info", "good", "warn", "bad"],
        "form": SampleForm(),
        "bad_form": SampleForm({"memory": "-3", "kind": "x"}),
        "filter_form": SampleFilter({"text": "H100"}),
        "jobs": _jobs(),
        "charts": _charts(),
        "memory": [("Weights", 140e9), ("Optimiser states", 260e9), ("Activations", 90e9)],
        "over": [("Weights", 70e9), ("KV cache", 26e9)],
        "saturations": [
            {"label": "Compute", "value": 0.42, "note": "of 989 TFLOP/s dense BF16"},
            {"label": "Memory bandwidth", "value": 0.91, "tone": "warn", "note": "of 3.35 TB/s"},
            {"label": "Memory", "value": None},
        ],
        "steps": [
            {"label": "Draft", "state": "done"},
            {"label": "In review", "state": "current", "note": "2 days"},
            {"label": "Approved", "state": "todo"},
            {"label": "Fulfilled", "state": "todo"},
        ],
        "failed_steps": [{"label": "Installed", "state": "done"}, {"label": "Burn-in", "state": "failed"}],
        "trail": trail,
        "tabs": [
            {"label": "Open", "url": "#", "current": True, "count": 4},
            {"label": "Closed", "url": "#", "count": 0},
        ],
        "changes": [("Quantity", "8", "16"), ("Region", "cn-north", "cn-north"), ("Note", "", "urgent")],
        "facts": [("Vendor", "Example Ltd"), ("Warranty", "36 months", "from acceptance"), ("Tax", None)],
        "columns": [("Plan", ""), ("GPUs", "num"), ("Cost", "num")],
        "table_rows": [["Own 8×H100", "8", "1,900,000.00 CNY"], ["Reserved", "8", None]],
        "amount": Money(Decimal("1234567.5"), "CNY"),
        "dollars": Money(Decimal("171234.50"), "USD"),
        "page": Paginator(range(120), 50).page(2),
        "sections": [{"title": _("Approvals"), "url": "#", "rows": [
            {"title": "REQ-2026-0012", "url": "#", "meta": "Vision · 8×H100", "badge": "in_review", "end": "2 d"},
            {"title": "REQ-2026-0014", "url": "#", "meta": "Language", "badge": "approved"},
        ]}],
    }  # fmt: skip
    return render(request, "core/gallery.html", context)
