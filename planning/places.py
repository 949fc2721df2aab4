"""The organisation's country, which its time zone tells."""

from __future__ import annotations

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.organisation import NotSetUp, organisation
from planning.models.requests import Residence

_COUNTRIES = {
    "Asia/Shanghai": "CN", "Asia/Urumqi": "CN", "Asia/Chongqing": "CN", "Asia/Harbin": "CN", "PRC": "CN",
    "Asia/Hong_Kong": "HK", "Asia/Taipei": "TW", "Asia/Tokyo": "JP", "Asia/Seoul": "KR", "Asia/Singapore": "SG",
    "Asia/Kolkata": "IN", "Asia/Dubai": "AE", "Asia/Jakarta": "ID", "Asia/Kuala_Lumpur": "MY",
    "Australia/Sydney": "AU", "Australia/Melbourne": "AU", "Europe/London": "GB", "Europe/Dublin": "IE",
    "Europe/Paris": "FR", "Europe/Berlin": "DE", "Europe/Amsterdam": "NL", "Europe/Brussels": "BE",
    "Europe/Stockholm": "SE", "Europe/Helsinki": "FI", "Europe/Oslo": "NO", "America/Toronto": "CA",
    "America/Vancouver": "CA", "America/Sao_Paulo": "BR", "America/New_York": "US", "America/Chicago": "US",
    "America/Denver": "US", "America/Los_Angeles": "US", "America/Phoenix": "US", "US/Pacific": "US",
    "US/Eastern": "US", "US/Central": "US", "US/Mountain": "US",
}  # fmt: skip


def country_of_zone(zone: str) -> str:
    """ISO country of an IANA zone; the zone itself where it is not known, which no region matches."""
    return _COUNTRIES.get(zone, zone)


_NAMES = {
    "CN": _("China"), "HK": _("Hong Kong"), "TW": _("Taiwan"), "JP": _("Japan"), "KR": _("South Korea"),
    "SG": _("Singapore"), "IN": _("India"), "AE": _("United Arab Emirates"), "ID": _("Indonesia"),
    "MY": _("Malaysia"), "AU": _("Australia"), "GB": _("United Kingdom"), "IE": _("Ireland"), "FR": _("France"),
    "DE": _("Germany"), "NL": _("Netherlands"), "BE": _("Belgium"), "SE": _("Sweden"), "FI": _("Finland"),
    "NO": _("Norway"), "CA": _("Canada"), "BR": _("Brazil"), "US": _("United States"),
}  # fmt: skip


def country_name(code: str) -> str:
    """A country in the reader's language; what has no name here as it is written."""
    return str(_NAMES.get(code, code))


def residence_label(value: str) -> str:
    """Where the data may be, with the country's name: "In the country only" is none to somebody far away."""
    label = str(Residence(value).label)
    if value != Residence.COUNTRY:
        return label
    try:
        country = country_name(country_of_zone(organisation().time_zone))
    except NotSetUp:
        return label
    return gettext("In the country only: %(country)s") % {"country": country}


def residence_choices() -> list[tuple[str, str]]:
    """Choices of a form."""
    return [(value, residence_label(value)) for value in Residence.values]
