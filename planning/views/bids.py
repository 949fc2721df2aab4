"""The bid ladder: a price history in, what each ceiling would have bought out. Nothing is stored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from core import charts
from core.charts import Chart
from core.errors import InputError
from core.http import SignedInRequest
from core.imports import EncodingNeeded
from core.messages import Message
from core.organisation import organisation
from core.templatetags.ui import money, percent, significant
from planning.forms.bids import BidForm
from planning.services.bid_ladder import Ladder, bid_ladder

ASKED = ("on_demand", "currency", "work_hours", "interval_minutes")  # may come with the address


def bid_page(request: SignedInRequest) -> HttpResponse:
    """The form, and the ladder under it once a history was read."""
    start = {"currency": organisation().currency}
    start |= {name: request.GET[name] for name in ASKED if name in request.GET}
    form = BidForm(initial=start)
    context: dict[str, Any] = {}
    if request.method == "POST":
        form = BidForm(request.POST, request.FILES)
        found = _computed(form) if form.is_valid() else None
        if found is not None:
            context = _shown(found)
    status = 422 if form.errors else 200
    return render(request, "planning/bids.html", {"form": form, **context}, status=status)


def _computed(form: BidForm) -> Ladder | None:
    data = form.cleaned_data
    offset = timezone.now().astimezone(organisation().zone).utcoffset()
    try:
        return bid_ladder(
            data["file"].read(), job=form.job(), on_demand=form.price(), series=data["series"],
            encoding=data["encoding"], utc_offset_hours=offset.total_seconds() / 3600 if offset else 0.0,
        )  # fmt: skip
    except EncodingNeeded as error:
        form.add_error("encoding", error.message.render(_))
    except InputError as error:
        name = BidForm.FIELDS.get(error.field, error.field)
        text = Message(error.message.template, error.message.params).render(_)
        form.add_error(name if name in form.fields else "file", text)
    return None


def _shown(found: Ladder) -> dict[str, Any]:
    prices = found.prices
    return {
        "rows": [
            {
                "ceiling": money(one.ceiling),
                "share": percent(one.share_of_on_demand),
                "hours": significant(one.hours_bought),
                "mean": "–" if one.mean_price is None else money(one.mean_price),
                "cost": money(one.cost),
                "stops": one.interruptions,
                "finish": _moment(one.finish),
                "saving": "–" if one.saving is None else percent(-one.saving),
                "usual": one.ceiling.amount == found.suggested.amount,
            }
            for one in found.rungs
        ],
        "span": _("Prices from %(start)s, %(hours)s hours, %(steps)s steps")
        % {
            "start": _moment(prices.start),
            "hours": significant(prices.end_hour),
            "steps": prices.price.size,
        },
        "chart": _week(found),
    }  # fmt: skip


def _moment(at: datetime | None) -> str:
    return "" if at is None else str(date_format(timezone.localtime(at), "DATETIME_FORMAT"))


def _week(found: Ladder) -> Chart | None:
    """When spot is cheap."""
    if found.week is None:
        return None
    currency = found.prices.currency
    return charts.lines(
        title=_("Mean price over the week"),
        description=_("Monday 0:00 first, where the organisation is. Nights and weekends are usually cheapest."),
        labels=(_("Hour of the week"), _("Price"), _("Price an hour [%(currency)s]") % {"currency": currency}),
        rows=[(float(hour), _("Spot"), float(value), None, None) for hour, value in enumerate(found.week)],
    )  # fmt: skip
