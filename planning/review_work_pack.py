"""Chapters of a pack on earlier decisions and teams' plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from core.templatetags.ui import significant
from planning.follow_ups import state_words
from planning.models.review_work import ReviewAction
from planning.review_parts import DASH, Section, Table


def _outcome(row: Mapping[str, Any]) -> str:
    """What was filed, with its state at the freezing, and what the owner said. Older figures name a request only."""
    filed = [
        f"{one['reference']} ({state_words(one['kind'], one['state'])})"
        for one in row.get("became", [])
    ]
    said = [row.get("request", ""), *filed, row["outcome"]]
    return " · ".join(part for part in said if part) or DASH


def looked_back(data: Mapping[str, Any]) -> tuple[Section, ...]:
    """What became of the last decisions, and plans beside what happened."""
    if "earlier_actions" not in data:
        return ()
    actions, plans = data["earlier_actions"], data["plans"]
    tables = []
    if actions:
        tables.append(
            Table(
                _("Decisions of earlier reviews"),
                (
                    (_("Decision"), ""), (_("Review"), ""), (_("Who does it"), ""), (_("By"), ""), (_("State"), ""),
                    (_("What became of it"), ""),
                ),
                tuple(
                    (
                        row["text"], row["review"], row["owner"], row["due"],
                        str(ReviewAction.Status(row["state"]).label),
                        _outcome(row),
                    )
                    for row in actions
                ),
                "earlier_actions", tuple({"text": row["text"], "owner": row["owner"]} for row in actions),
            )
        )  # fmt: skip
    if plans:
        tables.append(
            Table(
                _("Teams' plans, in busy cards"),
                (
                    (_("Team"), ""), (_("Last plan"), "num"), (_("Measured"), "num"), (_("Next three months"), "num"),
                    (_("What for"), ""),
                ),
                tuple(
                    (
                        row["team"], significant(row["last"]) if row["last"] is not None else DASH,
                        significant(row["measured"]) if row["measured"] is not None else DASH,
                        significant(row["cards"]) if row["cards"] is not None else DASH, row["text"] or DASH,
                    )
                    for row in plans
                ),
                "plans", tuple({"team": row["team"]} for row in plans),
            )
        )  # fmt: skip
    return (
        Section(
            title=_("Since the last review"),
            sources=("earlier_actions", "plans"),
            tables=tuple(tables),
            empty="" if tables else _("No earlier decision and no team's plan is known."),
        ),
    )
