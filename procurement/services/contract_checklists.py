"""The checklists of a contract: copied from the shipped ones with the order, edited as versions until it binds."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import get_language

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import Message, msg
from core.models import User
from procurement.models import ChecklistItem, ChecklistTemplate, PurchaseOrder
from procurement.models.assets import AssetKind
from procurement.models.burn_in import INSTANCE, KIND_CHOICES, DecidedBy, Weight
from procurement.models.quotes import LineKind
from procurement.services.checklists import standing_checklists, template_for
from procurement.services.moves import need_reason, take, touch

LEFT_OUT = "left_out"
COPIED = (
    "code", "text", "text_zh", "criterion", "criterion_zh", "evidence", "evidence_zh", "weight", "decided_by",
    "formats", "rules",
)  # fmt: skip
WORDS = ("text", "text_zh", "criterion", "criterion_zh", "evidence", "evidence_zh")
LONGEST = {"code": 12, "text": 200, "criterion": 300, "evidence": 120}
# What keeps "accepted" from meaning nothing stands in every contract as it is.
KEPT = (DecidedBy.DURATION, DecidedBy.PROMISE)


def kinds_of(order: PurchaseOrder) -> list[str]:
    """Kinds of units that the order brings: a checklist each."""
    lines = list(order.lines.all())
    found: list[str] = []
    if any(line.kind == LineKind.CLOUD for line in lines):
        found.append(INSTANCE)
    goods = [line for line in lines if line.kind != LineKind.CLOUD and line.serialised]
    if any(line.accelerators_per_item for line in goods):
        found += [AssetKind.ACCELERATOR, AssetKind.NODE]
    if any(not line.accelerators_per_item for line in goods):
        found.append(AssetKind.OTHER)
    return [str(kind) for kind in found]


def pin_checklists(order: PurchaseOrder, *, by: User) -> None:
    """Copy the newest shipped checklist for each kind that the order brings and that has no copy yet."""
    for kind in kinds_of(order):
        standing = template_for(kind, order)
        if standing.order_id is None:
            _copy(standing, order, base=standing, version=1, by=by)


def _copy(
    source: ChecklistTemplate,
    order: PurchaseOrder,
    *,
    base: ChecklistTemplate,
    version: int,
    by: User,
    reason: str = "",
) -> ChecklistTemplate:
    made = ChecklistTemplate.objects.create(
        slug=base.slug, version=version, asset_kind=base.asset_kind, title=base.title, title_zh=base.title_zh,
        source=base.source, order=order, base=base, made_by=by, reason=reason,
    )  # fmt: skip
    ChecklistItem.objects.bulk_create(
        ChecklistItem(
            template=made, position=item.position, **{name: getattr(item, name) for name in COPIED}
        )
        for item in source.items.all()
    )
    return made


@transaction.atomic
def set_item(
    *,
    order_id: int,
    kind: str,
    code: str,
    weight: str,
    reason: str,
    by: User,
    text: str = "",
    criterion: str = "",
    evidence: str = "",
    version: int | None = None,
) -> PurchaseOrder:
    """Change an item of a draft order's checklist, add one that a person decides, or leave one out, with a reason.

    Each change is a further version, in the words of the active language; those of the other stay. Raises NotPermitted,
    InvalidTransition (the order binds; the hours and the promises stand), StaleData or InputError.
    """
    order: PurchaseOrder = take(
        PurchaseOrder.objects.select_related("vendor", "award"), order_id, action="edit_checklist", by=by,
        version=version,
    )  # fmt: skip
    why = need_reason(reason)
    kinds = kinds_of(order)
    if kind not in kinds:
        raise InputError(
            "kind", msg("%(value)s is not one of %(choices)s", value=kind, choices=", ".join(kinds)), value=kind,
            limit=", ".join(kinds),
        )  # fmt: skip
    if weight not in (*Weight.values, LEFT_OUT):
        raise InputError(
            "weight",
            msg("%(value)s is not one of %(choices)s", value=weight, choices=", ".join((*Weight.values, LEFT_OUT))),
            value=weight,
        )  # fmt: skip
    pin_checklists(order, by=by)
    standing = template_for(kind, order)
    name = _word("code", code.upper())
    before = standing.items.filter(code=name).first()
    if before is None and (weight == LEFT_OUT or not name):
        raise InputError(
            "code", msg("The checklist has no item %(code)s", code=code.strip()), value=code
        )
    if before is not None and before.decided_by in KEPT and weight != before.weight:
        raise InvalidTransition(
            msg("%(code)s stands in every contract: only its words can change", code=name)
        )
    if before is None and not (text.strip() and criterion.strip()):
        raise InputError("criterion", msg("A new item needs its words and a measurable criterion"))
    made = _copy(
        standing, order, base=standing.base or standing, version=standing.version + 1, by=by, reason=why
    )  # fmt: skip
    told = {
        field: word
        for field, value in (("text", text), ("criterion", criterion), ("evidence", evidence))
        if (word := _word(field, value))
    }
    # What is changed is changed in the language it is read in; a new item has its words in both.
    chinese = {f"{field}_zh": word for field, word in told.items()}
    if before is None:
        words = told | chinese
    else:
        words = chinese if (get_language() or "").startswith("zh") else told
    row = made.items.filter(code=name)
    if weight == LEFT_OUT:
        row.delete()
    elif before is not None:
        row.update(weight=weight, **words)
    else:
        ChecklistItem.objects.create(
            template=made, code=name, position=made.items.count() + 1, weight=weight,
            decided_by=DecidedBy.PERSON, **words,
        )  # fmt: skip
    touch(order)
    record(
        "order.checklist_changed", on=order, by=by, reason=why, code=name, checklist=f"{made.slug} v{made.version}",
        weight=[before.weight if before else None, weight], criterion=told.get("criterion", ""),
    )  # fmt: skip
    return order


def _word(field: str, value: str) -> str:
    text, limit = value.strip(), LONGEST[field]
    if len(text) > limit:
        raise InputError(
            field, msg("At most %(limit)s characters", limit=limit), value=len(text), limit=limit
        )
    return text


@dataclass(frozen=True, slots=True)
class Deviation:
    """One difference between a contract's checklist and the shipped one that it was copied from."""

    code: str
    words: Message


def deviations(template: ChecklistTemplate) -> list[Deviation]:
    """Items added, left out or changed against the shipped version, in order of the checklist."""
    if template.base is None:
        return []
    was = {item.code: item for item in template.base.items.all()}
    now = {item.code: item for item in template.items.all()}
    found = []
    for code, item in {**was, **now}.items():
        old = was.get(code)
        if old is None:
            found.append(
                Deviation(code, msg("%(code)s is added: %(text)s", code=code, text=item.local_text))
            )
        elif code not in now:
            found.append(
                Deviation(
                    code, msg("%(code)s is left out: %(text)s", code=code, text=old.local_text)
                )
            )
        else:
            if item.weight != old.weight:
                found.append(
                    Deviation(
                        code,
                        msg("%(code)s: %(now)s instead of %(was)s", code=code, now=str(item.get_weight_display()),
                            was=str(old.get_weight_display())),
                    )
                )  # fmt: skip
            for field in WORDS:
                if getattr(item, field) != getattr(old, field):
                    found.append(
                        Deviation(
                            code,
                            msg("%(code)s: “%(now)s” instead of “%(was)s”", code=code,
                                now=getattr(item, field), was=getattr(old, field)),
                        )
                    )  # fmt: skip
    return found


def contract_checklists(order: PurchaseOrder) -> list[ChecklistTemplate]:
    """The newest version for each kind that the order brings: the contract's, or the shipped one before it has any."""
    standing = standing_checklists(kinds_of(order), order)
    return [standing[kind] for kind, _label in KIND_CHOICES if kind in standing]
