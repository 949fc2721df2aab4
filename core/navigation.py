"""The product's navigation, in one place. An entry whose address does not exist (yet) is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.models import User
from core.roles import Role, has_role, has_role_anywhere

CENTRAL = (Role.PROCUREMENT, Role.OPERATIONS, Role.FINANCE, Role.AUDITOR, Role.ADMINISTRATOR)

PROVING = (*CENTRAL, Role.APPROVER)  # approvers sign acceptances


@dataclass(frozen=True, slots=True)
class Entry:
    """One link: `url_name` without arguments; `roles` empty means everyone. `icon` is an id of static/icons.svg.

    `central`: the role must be held for the whole organisation, not only for a team.
    """

    label: str | Promise
    url_name: str
    icon: str
    roles: tuple[Role, ...] = ()
    central: bool = False

    def open_to(self, user: User) -> bool:
        """Whether `user` may follow it."""
        if not self.roles:
            return True
        return (has_role if self.central else has_role_anywhere)(user, *self.roles)


@dataclass(frozen=True, slots=True)
class Section:
    """Links under one heading."""

    label: str | Promise
    entries: tuple[Entry, ...]


SECTIONS: tuple[Section, ...] = (
    Section(
        "",
        (
            Entry(_("Home"), "home", "home"),
            Entry(_("Approvals"), "approval-list", "approval"),
        ),
    ),
    Section(
        pgettext_lazy("navigation", "Plan"),
        (
            Entry(_("Requests"), "request-list", "request"),
            Entry(_("Quick estimate"), "quick-estimate", "estimate"),
            Entry(_("Ceilings for spot"), "bids", "estimate"),
            Entry(_("Catalogue"), "catalog-home", "chip"),
            Entry(_("Capacity"), "capacity", "clock"),
            Entry(_("Budgets"), "budget-list", "budget"),
            Entry(_("Portfolio"), "portfolio", "review"),
            Entry(_("Sites"), "site-list", "box"),
        ),
    ),
    Section(
        pgettext_lazy("navigation", "Buy"),
        (
            Entry(_("Requests for quotation"), "rfq-list", "cart", CENTRAL),
            Entry(_("Purchase orders"), "order-list", "box", CENTRAL),
            Entry(_("Vendors"), "vendor-list", "vendor", CENTRAL),
        ),
    ),
    Section(
        pgettext_lazy("navigation", "Prove"),
        (
            Entry(_("Deliveries and burn-in"), "delivery-list", "flame", PROVING),
            Entry(_("Assets"), "asset-list", "chip", PROVING),
            Entry(_("Returns (RMA)"), "rma-list", "rma", PROVING),
            Entry(_("Invoices"), "invoice-list", "budget", PROVING),
        ),
    ),
    Section(
        pgettext_lazy("navigation", "Calibrate"),
        (
            Entry(_("Use of the fleet"), "telemetry", "clock"),
            Entry(_("Calibration"), "calibration", "good"),
            Entry(_("Month-one reviews"), "month-one-list", "approval"),
            Entry(_("Trouble finder"), "trouble", "search"),
            Entry(_("Capacity reviews"), "review-list", "review", PROVING, central=True),
        ),
    ),
    Section(
        pgettext_lazy("navigation", "Record"),
        (
            Entry(_("Audit trail"), "audit-list", "audit"),
            Entry(_("Background jobs"), "job-list", "clock"),
            Entry(
                _("Stage of the organisation"), "organisation-stage", "gear", (Role.ADMINISTRATOR,)
            ),
            Entry(_("Purchasing policy"), "purchasing-policy", "gear", (Role.ADMINISTRATOR,)),
            Entry(
                _("Tax on purchases"), "purchase-tax", "gear", (Role.ADMINISTRATOR, Role.FINANCE)
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Link:
    """An entry as drawn."""

    label: str | Promise
    url: str
    icon: str
    current: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A section as drawn."""

    label: str | Promise
    links: Sequence[Link] = field(default_factory=tuple)


def _address(url_name: str) -> str | None:
    try:
        return reverse(url_name)
    except NoReverseMatch:
        return None


def navigation(user: User, path: str) -> list[Group]:
    """What `user` may open, with the entry nearest to `path` marked as current."""
    visible = [
        (section, [(entry, _address(entry.url_name)) for entry in section.entries])
        for section in SECTIONS
    ]
    addresses = [url for _section, entries in visible for _entry, url in entries if url]
    within = [url for url in addresses if path == url or (url != "/" and path.startswith(url))]
    current = max(within, key=len, default=None)
    groups = []
    for section, entries in visible:
        links = [
            Link(entry.label, url, entry.icon, current=url == current)
            for entry, url in entries
            if url and entry.open_to(user)
        ]
        if links:
            groups.append(Group(section.label, links))
    return groups
