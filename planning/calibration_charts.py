"""Charts of predicted against measured, of errors and of coverage: for the page and the review's pack."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from core import charts
from planning.models.calibration import MeasuredOutcome, OutcomeKind, work_label
from planning.selectors.calibration import Score

PROMISED = 80.0  # share of outcomes that P10 to P90 promise to hold [%]


def scatters(outcomes: Sequence[MeasuredOutcome]) -> list[charts.Chart]:
    """One scatter for each kind of outcome that there is, with each estimate's P10 to P90 where it was told."""
    found = []
    for kind in OutcomeKind:
        rows = [row for row in outcomes if row.kind == kind]
        if not rows:
            continue
        found.append(
            charts.scatter(
                title=_("Predicted against measured: %(kind)s") % {"kind": kind.label},
                description=_(
                    "On the dashed line the estimate was right. A stroke spans P10 to P90: four of five strokes "
                    "should hold their point."
                ),
                labels=(_("Outcome"), _("Class of work"), _("Estimated"), _("Measured")),
                rows=[
                    (row.title, work_label(row.work or row.kind), row.estimated, row.measured)
                    for row in rows
                ],
                bands=[_band(row) for row in rows],
                equal=_("measured = estimated"),
                log_x=True,
                log_y=True,
            )
        )
    return found


def _band(row: MeasuredOutcome) -> tuple[float | None, float | None]:
    """P10 and P90 as they can stand on a logarithmic axis."""
    if row.low is None or row.high is None or row.low <= 0:
        return None, None
    return row.low, row.high


def courses(months: Sequence[Score]) -> list[charts.Chart]:
    """Median error, and the share between P10 and P90, by class of work and month."""
    ordered = sorted(months, key=lambda score: (score.month, score.work))
    if not ordered:
        return []
    found = [
        charts.lines(
            title=_("Error by class over time"),
            labels=(_("Month"), _("Class of work"), _("Median error [%]")),
            rows=[(s.month, work_label(s.work), s.median_error * 100, None, None) for s in ordered],
        )
    ]
    banded = [s for s in ordered if s.within is not None]
    if banded:
        found.append(
            charts.lines(
                title=_("Coverage of P10 to P90 over time"),
                labels=(_("Month"), _("Class of work"), _("Between P10 and P90 [%]")),
                rows=[
                    (s.month, work_label(s.work), (s.within or 0.0) * 100, None, None)
                    for s in banded
                ],
                limit=PROMISED,
                limit_label=_("promised: 80 %"),
            )
        )
    return found
