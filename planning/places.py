"""The organisation's country, which its time zone tells."""

from __future__ import annotations

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
