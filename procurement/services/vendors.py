"""The vendor register."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User, validate_zone
from core.money import CURRENCIES
from core.policies import require
from procurement import policies
from procurement.models import Vendor, VendorContact
from procurement.models.vendors import Channel
from procurement.services.moves import move, need_reason, take, touch
from procurement.states import VendorStatus

FIELDS = (
    "name", "legal_name", "channel", "currency", "language", "time_zone", "tax_number", "address",
    "payment_terms", "notes",
)  # fmt: skip


def _check(values: dict[str, Any]) -> dict[str, Any]:
    unknown = set(values) - set(FIELDS)
    if unknown:
        name = sorted(unknown)[0]
        raise InputError(name, msg("A vendor has no field %(name)s", name=name), value=name)
    if "name" in values:
        values["name"] = " ".join(str(values["name"]).split())
        if not values["name"]:
            raise InputError("name", msg("A vendor needs a name"))
    if "channel" in values and values["channel"] not in Channel.values:
        raise InputError(
            "channel",
            msg("%(value)s is not one of %(choices)s", value=str(values["channel"]),
                choices=", ".join(Channel.values)),
            value=values["channel"], limit=", ".join(Channel.values),
        )  # fmt: skip
    if "currency" in values and values["currency"] not in CURRENCIES:
        raise InputError(
            "currency",
            msg("%(value)s is not a currency in use", value=str(values["currency"])),
            value=values["currency"],
        )
    if values.get("time_zone"):
        try:
            validate_zone(values["time_zone"])
        except ValidationError as error:
            raise InputError(
                "time_zone",
                msg("%(value)s is not an IANA time zone.", value=str(values["time_zone"])),
                value=values["time_zone"],
            ) from error
    else:
        values.pop("time_zone", None)
    return values


def _refuse_twin(name: str, pk: int = 0) -> None:
    if Vendor.objects.filter(name__iexact=name).exclude(pk=pk).exists():
        raise InputError(
            "name", msg("A vendor named %(name)s is registered already", name=name), value=name
        )


@transaction.atomic
def create_vendor(*, by: User, contacts: Sequence[dict[str, str]] = (), **values: Any) -> Vendor:
    """Register a vendor. Raises NotPermitted or InputError (also for a name that exists in another case)."""
    require(policies.can_keep_vendors(by))
    for name in ("name", "channel", "currency"):
        if not values.get(name):
            raise InputError(name, msg("%(field)s is missing", field=name))
    values = _check(values)
    _refuse_twin(values["name"])
    try:
        with transaction.atomic():
            vendor = Vendor.objects.create(created_by=by, **values)
    except IntegrityError:
        _refuse_twin(values["name"])
        raise
    for contact in contacts:
        _add_contact(vendor, **contact)
    record("vendor.created", on=vendor, by=by, channel=vendor.channel, currency=vendor.currency)
    return vendor


@transaction.atomic
def update_vendor(*, vendor_id: int, by: User, version: int | None = None, **values: Any) -> Vendor:
    """Change a vendor's data. Raises NotPermitted, InvalidTransition (blocked), StaleData or InputError."""
    vendor = take(Vendor.objects.all(), vendor_id, action="edit", by=by, version=version)
    values = _check(values)
    if "name" in values:
        _refuse_twin(values["name"], vendor.pk)
    changes = {
        name: [str(getattr(vendor, name)), str(value)]
        for name, value in values.items()
        if getattr(vendor, name) != value
    }
    if changes:
        for name in changes:
            setattr(vendor, name, values[name])
        vendor.save(update_fields=list(changes))
        touch(vendor)
        record("vendor.updated", on=vendor, by=by, changes=changes)
    return vendor


def _add_contact(
    vendor: Vendor, *, name: str, role: str = "", email: str = "", phone: str = ""
) -> VendorContact:
    if not name.strip():
        raise InputError("contact_name", msg("A contact needs a name"))
    if email:
        try:
            validate_email(email)
        except ValidationError as error:
            raise InputError(
                "email", msg("%(value)s is not an e-mail address", value=email), value=email
            ) from error
    return VendorContact.objects.create(
        vendor=vendor, name=name.strip()[:120], role=role[:80], email=email, phone=phone[:40]
    )


@transaction.atomic
def add_contact(
    *, vendor_id: int, by: User, name: str, role: str = "", email: str = "", phone: str = "",
    version: int | None = None,
) -> Vendor:  # fmt: skip
    """Add a contact person."""
    vendor = take(Vendor.objects.all(), vendor_id, action="edit", by=by, version=version)
    contact = _add_contact(vendor, name=name, role=role, email=email, phone=phone)
    touch(vendor)
    record("vendor.contact_added", on=vendor, by=by, contact=contact.name)
    return vendor


@transaction.atomic
def block_vendor(*, vendor_id: int, by: User, reason: str, version: int | None = None) -> Vendor:
    """Take a vendor out of use, with a reason: no quote, award or order from now on."""
    vendor = take(Vendor.objects.all(), vendor_id, action="block", by=by, version=version)
    text = need_reason(reason)
    vendor.blocked_reason, vendor.blocked_by = text, by
    vendor.save(update_fields=["blocked_reason", "blocked_by"])
    move(vendor, VendorStatus.BLOCKED, by=by, action="vendor.blocked", reason=text)
    return vendor


@transaction.atomic
def unblock_vendor(*, vendor_id: int, by: User, reason: str, version: int | None = None) -> Vendor:
    """Put a vendor back into use: a second person, with a reason."""
    vendor = take(Vendor.objects.all(), vendor_id, action="unblock", by=by, version=version)
    text = need_reason(reason)
    move(vendor, VendorStatus.ACTIVE, by=by, action="vendor.unblocked", reason=text)
    vendor.blocked_reason, vendor.blocked_by = "", None
    vendor.save(update_fields=["blocked_reason", "blocked_by"])
    return vendor
