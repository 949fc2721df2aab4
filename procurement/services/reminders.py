"""Told in time: warranties that end, waivers and vendors' papers that run out. Each matter once per person and mark."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

from django.db.models import Count, Max

from core.messages import msg
from core.models import User
from core.organisation import today
from core.outbox import notify
from core.roles import Role
from procurement.models import Asset, Delivery, PurchaseOrder, RunItem, VendorDocument
from procurement.models.burn_in import ItemResult
from procurement.services.registrations import unregistered
from procurement.states import GONE_ASSET, BurnInStatus, VendorStatus

MARKS = (90, 30, 7)  # days before the end [d]
WAIVER_MARKS = (30, 7, 0)
DOCUMENT_MARKS = (60, 30, 7, 0)
REGISTRATION_MARKS = (14, 7, 1)
REGISTER_AFTER = 7  # days after the delivery, where the quote tells no term


def remind_of_warranties(day: date | None = None) -> int:
    """Tell operations and procurement of each order's units whose last cover ends within 90, 30 or 7 days.

    Returns the number of matters. Safe to repeat, and a day that was missed is made up: the narrowest mark is told.
    """
    day = day or today()
    rows = (
        Asset.objects.exclude(status__in=GONE_ASSET)
        .annotate(last=Max("warranties__ends_on"))
        .filter(last__gte=day, last__lte=day + timedelta(days=max(MARKS)))
        .exclude(warranties__starts_on=None)
        .values_list("receipt_line__order_line__order", "last")
        .order_by()
    )
    counts: dict[tuple[int | None, date], int] = {}
    for pair in rows:
        counts[pair] = counts.get(pair, 0) + 1
    orders = PurchaseOrder.objects.in_bulk({pk for pk, _last in counts if pk is not None})
    people = _people(Role.OPERATIONS, Role.PROCUREMENT)
    told = 0
    for (order_id, last), n in sorted(counts.items(), key=str):
        if order_id is None:
            continue
        mark = min(m for m in MARKS if (last - day).days <= m)
        notify(
            people,
            "warranty.ends",
            on=orders[order_id],
            message=msg(
                "%(n)s units of %(order)s are under warranty until %(last)s, in %(days)s days: claim what is open",
                n=n,
                order=str(orders[order_id]),
                last=last.isoformat(),
                days=(last - day).days,
            ),
            url="/procurement/assets/?cover=expiring",
            revision=f"{last.isoformat()}/{mark}",
        )
        told += 1
    return told


def remind_of_waivers(day: date | None = None) -> int:
    """Tell who waived an item, and operations, 30 and 7 days before the waiver runs out and when it has."""
    day = day or today()
    rows = (
        RunItem.objects.filter(
            result=ItemResult.WAIVED,
            expires_on__lte=day + timedelta(days=max(WAIVER_MARKS)),
            run__status__in=[BurnInStatus.RUNNING, BurnInStatus.INTERRUPTED, BurnInStatus.PASSED],
        )
        .exclude(run__asset__status__in=GONE_ASSET)
        .select_related("item", "run__asset", "decided_by")
        .order_by("pk")
    )
    told = 0
    for row in rows:
        left = (row.expires_on - day).days if row.expires_on else 0
        mark = min((m for m in WAIVER_MARKS if left <= m), default=0)
        who = [*([row.decided_by] if row.decided_by else []), *_people(Role.OPERATIONS)]
        text = (
            msg(
                "The waiver of %(code)s on %(serial)s has run out: test it again or waive it anew",
                code=row.item.code,
                serial=row.run.asset.serial,
            )
            if left < 0
            else msg(
                "The waiver of %(code)s on %(serial)s runs out in %(days)s days",
                code=row.item.code,
                serial=row.run.asset.serial,
                days=left,
            )
        )
        notify(
            who,
            "waiver.ends",
            on=row.run,
            message=text,
            url=f"/procurement/burn-in/{row.run_id}/",
            revision=f"{row.item.code}/{'over' if left < 0 else mark}",
        )
        told += 1
    return told


def remind_of_documents(day: date | None = None) -> int:
    """Tell procurement of vendors' papers that run out within 60, 30 or 7 days, and when they have.

    Returns the number of matters. Safe to repeat: the narrowest mark is told once. Blocked vendors are left out.
    """
    day = day or today()
    rows = (
        VendorDocument.objects.filter(
            retired_at=None,
            expires_on__lte=day + timedelta(days=max(DOCUMENT_MARKS)),
            vendor__status=VendorStatus.ACTIVE,
        )
        .select_related("vendor")
        .order_by("pk")
    )
    people, told = _people(Role.PROCUREMENT), 0
    for row in rows:
        left = (row.expires_on - day).days if row.expires_on else 0
        mark = min((m for m in DOCUMENT_MARKS if left <= m), default=0)
        text = (
            msg("%(title)s of %(vendor)s has run out: ask for a new one", title=row.title,
                vendor=row.vendor.name)
            if left < 0
            else msg("%(title)s of %(vendor)s runs out in %(days)s days", title=row.title,
                     vendor=row.vendor.name, days=left)
        )  # fmt: skip
        notify(
            people,
            "vendor_document.ends",
            on=row.vendor,
            message=text,
            url=row.vendor.get_absolute_url(),
            revision=f"{row.pk}/{'over' if left < 0 else mark}",
        )
        told += 1
    return told


def remind_of_registrations(day: date | None = None) -> int:
    """Tell operations and procurement of deliveries whose warranty starts only when it is registered.

    With a term in the quote 14, 7 and 1 days before it ends and when it has; else a week after the delivery. Returns
    the number of matters. Safe to repeat: the narrowest mark is told once.
    """
    day = day or today()
    rows = (
        unregistered()
        .values_list(
            "asset__receipt_line__delivery", "asset__receipt_line__delivery__arrived_on",
            "source__warranty__registration_days",
        )
        .annotate(n=Count("pk"))
        .order_by("asset__receipt_line__delivery", "source__warranty__registration_days")
    )  # fmt: skip
    found = [row for row in rows if row[0] is not None and row[1] is not None]
    deliveries = Delivery.objects.select_related("order").in_bulk({row[0] for row in found})
    people, told = _people(Role.OPERATIONS, Role.PROCUREMENT), 0
    for pk, arrived, days, n in found:
        delivery = deliveries[pk]
        if days is None:
            if day < arrived + timedelta(days=REGISTER_AFTER):
                continue
            mark, text = "unsaid", msg(
                "The warranty of %(n)s units of %(order)s starts only when they are registered at the vendor: register "
                "them and note it", n=n, order=str(delivery.order),
            )  # fmt: skip
        else:
            last = arrived + timedelta(days=days)
            left = (last - day).days
            if left > max(REGISTRATION_MARKS):
                continue
            mark = "over" if left < 0 else str(min(m for m in REGISTRATION_MARKS if left <= m))
            text = msg(
                "%(n)s units of %(order)s had to be registered at the vendor until %(last)s: their warranty has not "
                "started", n=n, order=str(delivery.order), last=last.isoformat(),
            ) if left < 0 else msg(
                "%(n)s units of %(order)s must be registered at the vendor until %(last)s, in %(days)s days: else "
                "their warranty does not start", n=n, order=str(delivery.order), last=last.isoformat(), days=left,
            )  # fmt: skip
        notify(
            people, "warranty.unregistered", on=delivery, message=text, url=delivery.get_absolute_url(),
            revision=f"{days}/{mark}",
        )  # fmt: skip
        told += 1
    return told


def _people(*roles: Role) -> list[User]:
    found: Iterable[User] = User.objects.filter(
        is_active=True, memberships__team=None, memberships__role__in=roles
    ).distinct()
    return list(found)
