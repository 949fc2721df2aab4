"""How a request spreads its load, as drawings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from core.charts import lines
from core.charts.drawing import Chart
from planning.study import profiles
from planning.study.load_series import is_week


def load_charts(workload: Mapping[str, Any]) -> list[Chart]:
    """The week and the year of a workload that tells them, in per cent of the busiest hour or month."""
    found = []
    series = workload.get("load_series")
    if series is not None and is_week(series):
        week = series["values"]
        days = [week[at : at + profiles.HOURS] for at in range(0, profiles.WEEK, profiles.HOURS)]
        same = all(day == days[0] for day in days)
        names = [date_format(date(2000, 1, 3 + day), "l") for day in range(profiles.DAYS)]
        rows: list[Any] = [
            (hour, _("Every day") if same else name, round(100 * load / max(week), 1), None, None)
            for name, day in ([("", days[0])] if same else zip(names, days, strict=True))
            for hour, load in enumerate(day)
        ]
        found.append(
            lines(title=_("Load over the week"), rows=rows,
                  labels=(_("Hour of the day"), _("Day"), _("Percent of the busiest hour")))
        )  # fmt: skip
    if months := workload.get("load_months"):
        rows = [
            (f"{at + 1:02d}", _("Load"), round(100 * load / max(months), 1), None, None)
            for at, load in enumerate(months)
        ]
        found.append(
            lines(title=_("Load over the year"), rows=rows,
                  labels=(_("Month"), _("What"), _("Percent of the highest month")))
        )  # fmt: skip
    return found
