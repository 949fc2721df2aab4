"""Template helpers that draw: badges, icons, bars and meters. Loaded as built-ins.

The Content-Security-Policy allows no style attribute, so bars are SVG: presentation attributes are not styles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import template
from django.forms import BaseForm, BoundField
from django.template.base import render_value_in_context
from django.template.context import Context
from django.templatetags.static import static
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from core import labels
from core.palette import CATEGORICAL
from core.templatetags.ui import percent, quantity

register = template.Library()

register.filter("tone", labels.tone)
register.filter("action_label", labels.action_label)
register.filter("type_label", labels.type_label)


@register.filter
def fields(form: BaseForm, names: str) -> list[BoundField]:
    """Bound fields of a form by name: `{% for field in form|fields:"a b" %}{{ field.as_field_group }}{% endfor %}`."""
    return [form[name] for name in names.split()]


@register.filter
def tone_of_level(level: str) -> str:
    """Tone of a message of django.contrib.messages."""
    return {"success": "good", "warning": "warn", "error": "bad"}.get(level, "info")


@register.filter
def nth(items: Sequence[Any], index: int) -> Any:
    """The element at `index`."""
    return items[index]


@register.simple_tag(takes_context=True)
def table_rows(
    context: Context,
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Iterable[Any]],
    *,
    printed: bool = False,
) -> SafeString:
    """The rows of components/table.html: a head, then cells. In one go, for a pack has thousands of cells.

    On a page each cell carries its column's name, which stands beside it on a narrow screen; `printed` it does not.
    """
    openings = [
        _opening(i, label, kind, printed=printed) for i, (label, kind) in enumerate(columns)
    ]
    found = []
    for row in rows:
        found.append("<tr>")
        for i, value in enumerate(row):
            text = "–" if value is None else render_value_in_context(value, context)
            found += (openings[i], text, "</td>" if i else "</th>")
        found.append("</tr>")
    return mark_safe("".join(found))  # noqa: S308 - every value was escaped by the line that renders it


def _opening(index: int, label: str, kind: str, *, printed: bool) -> str:
    name = format_html(' class="{}"', kind) if kind else ""
    if index == 0:
        return f'<th scope="row"{name}>'
    return f"<td{name}>" if printed else f'<td{name} data-label="{escape(label)}">'


@register.simple_tag
def state_label(object_type: str, code: str) -> str:
    """A state of the trail in words."""
    return labels.state_label(object_type, code)


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """An icon of static/icons.svg. Decorative unless `label` says what it means."""
    address = f"{static('icons.svg')}#{name}"
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><use href="{}"></use></svg>',
            label,
            address,
        )
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}"></use></svg>', address)


@register.simple_tag
def badge(state: Any, label: str = "", tone: str = "") -> SafeString:
    """A state as a small coloured word. `label` defaults to the choice's own; `tone` to the state's."""
    text = label or getattr(state, "label", None) or state
    return format_html(
        '<span class="badge {}">{}</span>',
        tone or labels.tone(getattr(state, "value", state)),
        text,
    )


@register.simple_tag
def state_badge(obj: Any, field: str = "status") -> SafeString:
    """The state of a model instance: `{% state_badge order %}`."""
    code = getattr(obj, field)
    return badge(code, label=str(getattr(obj, f"get_{field}_display")()))


def _figure(value: float) -> str:
    """A number as SVG wants it, whatever the language."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


@register.inclusion_tag("components/stacked_bar.html")
def stacked_bar(
    parts: Iterable[tuple[Any, float]], total: float | None = None, unit: str = "B", title: str = ""
) -> dict[str, Any]:
    """Parts of a whole, e.g. memory: `parts` are (label, amount); `total` is the capacity (the sum when None).

    Parts beyond the capacity are drawn to the right of its mark.
    """
    rows = [(label, float(amount)) for label, amount in parts]
    used = sum(amount for _label, amount in rows)
    scale = max(used, total or 0.0)
    segments, start = [], 0.0
    for index, (label, amount) in enumerate(rows):
        width = 100 * amount / scale if scale > 0 else 0.0
        segments.append(
            {
                "label": label,
                "amount": quantity(amount, unit),
                "share": percent(amount / (total or used)) if (total or used) else "–",
                "x": _figure(start),
                "width": _figure(width),
                "color": CATEGORICAL[index % len(CATEGORICAL)],
            }
        )
        start += width
    free = (total - used) if total is not None else None
    return {
        "title": title,
        "segments": segments,
        "used": quantity(used, unit),
        "total": quantity(total, unit) if total is not None else "",
        "free": quantity(free, unit) if free is not None and free >= 0 else "",
        "over": quantity(-free, unit) if free is not None and free < 0 else "",
        "mark": _figure(100 * total / scale) if total is not None and total < used else "",
    }


@register.inclusion_tag("components/meters.html")
def meters(items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Shares of a limit, one under the other: each item has `label`, `value` (0–1, None: unknown) and may have `note`
    and `tone`. Used for the three saturations: compute, bandwidth, memory."""
    rows = []
    for item in items:
        value = item.get("value")
        rows.append(
            {
                "label": item["label"],
                "note": item.get("note", ""),
                "text": percent(value),
                "width": _figure(100 * min(max(float(value), 0.0), 1.0))
                if value is not None
                else "",
                "color": {
                    "good": CATEGORICAL[1],
                    "warn": CATEGORICAL[2],
                    "bad": CATEGORICAL[3],
                }.get(item.get("tone", ""), CATEGORICAL[0]),
            }
        )
    return {"rows": rows}


@register.inclusion_tag("components/breadcrumb.html")
def breadcrumb(*parts: Any) -> dict[str, Any]:
    """The way to this page: `{% breadcrumb label url label url … %}`, without the page itself."""
    return {"crumbs": list(zip(parts[::2], parts[1::2], strict=True))}
