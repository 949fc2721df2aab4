"""The form of a request: one per kind, made from the same declaration that the API and the import use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from catalog.models import ModelArchitecture
from catalog.reference import architectures
from core.errors import InputError
from core.forms import DateInput
from core.imports import EncodingNeeded, decode
from core.messages import Message, msg
from core.models import Team, User
from core.organisation import today
from core.units import unit_words
from planning import policies, workloads
from planning.models.requests import LatencyClass, RequestRevision, Residence
from planning.places import residence_choices
from planning.reference import resolve_model
from planning.services.request_content import check_terms
from planning.study import profiles
from planning.study.load_series import FIELD, is_week

MODEL_LIST = "catalogue-models"  # id of the datalist in templates/planning/request_form.html


def _said(message: Message | None) -> str:
    return message.render(gettext) if message else ""


def _form_field(field: workloads.Field) -> forms.Field:
    """The widget for one declared value. Checks stay with the declaration: the form hands the text on."""
    common: dict[str, Any] = {
        "label": _said(field.label),
        "help_text": _said(field.help),
        "required": field.required,
    }
    made: Any
    if field.type == "choice":
        choices = [(code, _said(label)) for code, label in field.choices]
        usual = dict(choices).get(str(field.default))
        nothing = gettext("Chosen by the study") if usual is None else _usual(usual)
        made = forms.ChoiceField(choices=[("", nothing), *choices], **common)
    elif field.type == "config":
        made = forms.CharField(
            widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}), **common
        )
    elif field.type == "months":
        made = forms.CharField(widget=forms.Textarea(attrs=_bars("months")), **common)
    else:
        attrs = {"inputmode": "decimal"} if field.type in ("number", "count") else {}
        if (
            field.default is not None
        ):  # counted with while nobody tells another; never put into the person's mouth
            usual = f"{field.default * 100:g} %" if field.type == "share" else f"{field.default:g}"
            attrs["placeholder"] = _usual(usual)
        made = forms.CharField(
            widget=forms.TextInput(attrs={"autocomplete": "off", **attrs}), **common
        )
    if field.unit:
        made.unit = unit_words(field.unit)
    if field.name == "model":
        made.widget.attrs["list"] = MODEL_LIST
        made.needed = True  # or its size or config.json, before it is submitted
    return made


def _usual(value: str) -> str:
    return gettext("usual: %(value)s") % {"value": value}


def _bars(kind: str) -> dict[str, Any]:
    """What the script needs to draw a field's numbers as bars; without it they are typed."""
    common = {"spellcheck": "false", "class": "mono"}
    if kind == "months":
        names = [date_format(date(2000, month, 1), "M") for month in range(1, profiles.MONTHS + 1)]
        return {
            **common, "rows": 2, "data-bars-columns": profiles.MONTHS,
            "data-bars-heads": "|".join(names),
        }  # fmt: skip
    days = [date_format(date(2000, 1, 3 + day), "D") for day in range(profiles.DAYS)]
    return {
        **common, "rows": profiles.DAYS, "data-bars-columns": profiles.HOURS,
        "data-bars-rows": "|".join(days), "data-bars-all": gettext("Every day"),
        "data-bars-heads": "|".join(f"{hour}:00" for hour in range(profiles.HOURS)),
    }  # fmt: skip


class RequestForm(forms.Form):
    """What is asked for, of one kind. `service_arguments` fit create_request and update_draft."""

    team = forms.ModelChoiceField(Team.objects.none(), label=_("Team"), empty_label=None)
    title = forms.CharField(label=_("Title"), max_length=160)
    need_by = forms.DateField(label=_("Needed by"), widget=DateInput())
    start = forms.DateField(label=_("Start at the earliest"), required=False, widget=DateInput())
    duration_days = forms.IntegerField(label=_("Duration"), required=False, min_value=1)
    data_residence = forms.ChoiceField(
        label=_("Where the data may be"), choices=residence_choices, required=False
    )
    region = forms.CharField(
        label=_("Region"), required=False, max_length=60, help_text=_("Empty: any.")
    )
    interruptible = forms.BooleanField(label=_("May be interrupted"), required=False)
    checkpoint_minutes = forms.FloatField(
        label=_("Checkpoint interval"), required=False, initial=30, min_value=0,
        help_text=_("How much work is lost at most when it is interrupted."),
    )  # fmt: skip
    latency_class = forms.ChoiceField(
        label=_("Latency class"),
        choices=LatencyClass.choices,
        required=False,
        initial=LatencyClass.CHAT,
    )
    accuracy_loss_limit = forms.CharField(
        label=_("Accuracy-loss limit"),
        required=False,
        help_text=_("For example 0.01 or 1 %. Empty: no loss is accepted."),
    )
    justification = forms.CharField(
        label=_("Justification"), required=False, widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Why it is needed. Approvers read this first; it may wait until you submit."),
    )  # fmt: skip

    # Where the form's name differs from the service's.
    RENAMED = {"checkpoint_seconds": "checkpoint_minutes", FIELD: "load_week"}
    TIMING = ("need_by", "start", "duration_days")
    LIMITS = ("latency_class", "accuracy_loss_limit", "interruptible", "checkpoint_minutes",
              "data_residence", "region")  # fmt: skip

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        files: Any = None,
        *,
        kind: str,
        user: User,
        revision: RequestRevision | None = None,
    ) -> None:
        self.kind = kind
        self.declared = tuple(f for f in workloads.FIELDS[kind] if f.type != "series")
        self.has_load = len(self.declared) < len(workloads.FIELDS[kind])
        # Measured hours come from a file on a page of their own and stay as they are; a week is drawn here.
        series = revision.workload.get(FIELD) if revision is not None else None
        self.kept = {FIELD: series} if series is not None and not is_week(series) else {}
        super().__init__(data, files, initial=_initial(revision) if revision else None)
        for field in self.declared:
            self.fields[field.name] = _form_field(field)
        if revision is not None:
            del self.fields["team"]
        else:
            ids = [
                team.pk
                for team in Team.objects.filter(active=True)
                if policies.can_create(user, team.pk)
            ]
            self.fields["team"].queryset = Team.objects.filter(pk__in=ids)  # type: ignore[attr-defined]
        if self.has_load and not self.kept:
            self.fields["load_week"] = forms.CharField(
                label=gettext("Load of each hour of the week"), required=False,
                widget=forms.Textarea(attrs=_bars("week")),
                help_text=gettext("Draw it, or write 24 numbers for every day or 168 from Monday 0:00 on; only their "
                                  "proportions count. With an empty peak over mean, theirs is taken."),
            )  # fmt: skip
            self.fields["load_file"] = forms.FileField(
                label=gettext("Load from a file"), required=False,
                help_text=gettext("CSV with day, hour and load, or hour and load; read in place of the numbers above."),
            )  # fmt: skip
        self.fields["justification"].needed = True  # type: ignore[attr-defined]
        self.fields["duration_days"].unit = gettext("days")  # type: ignore[attr-defined]
        self.fields["checkpoint_minutes"].unit = gettext("min")  # type: ignore[attr-defined]
        asked: tuple[tuple[tuple[str, ...], frozenset[Any]], ...] = (
            (("interruptible", "checkpoint_minutes"), workloads.ASKS_INTERRUPTIBLE),
            (("latency_class",), workloads.ASKS_LATENCY),
            (("accuracy_loss_limit",), workloads.ASKS_ACCURACY),
        )
        for names, kinds in asked:
            if kind not in kinds:
                for name in names:
                    del self.fields[name]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        self._read_file(data)
        self.workload = {
            field.name: self.data.get(self.add_prefix(field.name), "")
            for field in self.declared
            if str(self.data.get(self.add_prefix(field.name), "")).strip()
        } | self.kept
        if "load_week" in self.fields and (text := self.data.get("load_week", "").strip()):
            self.workload[FIELD] = text
        self.clean_workload, errors = workloads.problems(self.kind, self.workload)
        self.terms = self._terms(data)
        _checked, more = check_terms(self.kind, self.terms)
        for error in [*errors, *more]:
            self.refuse(error)
        if (
            self.errors
        ):  # a draft may hold them; where it is to be corrected anyway, all is told at once
            for name, text in self._doubts(data):
                if name not in self.errors:
                    self.add_error(name, text)
        return data

    def _read_file(self, data: dict[str, Any]) -> None:
        """Put what a file says in place of the numbers, so that the page shows them."""
        file = data.get("load_file")
        if not file:
            return
        try:
            if file.size > profiles.MOST_TEXT:
                raise InputError(
                    "load_file", msg("The file has %(size)s bytes; the limit is %(limit)s", size=file.size,
                                     limit=profiles.MOST_TEXT), value=file.size, limit=profiles.MOST_TEXT,
                )  # fmt: skip
            text, _encoding = decode(file.read())
        except InputError as error:
            self.add_error("load_file", ValidationError(error.message.render(gettext)))
        except EncodingNeeded:
            self.add_error("load_file", gettext("Save the file as UTF-8."))
        else:
            data = self.data.copy()  # type: ignore[attr-defined]  # bound to a QueryDict
            data["load_week"] = text
            self.data = data

    def _terms(self, data: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in (*self.TIMING, "justification", "data_residence", "region", "interruptible",
                                   "latency_class") if name in self.fields]  # fmt: skip
        terms = {name: data.get(name) for name in names}
        terms["data_residence"] = terms["data_residence"] or Residence.ANYWHERE
        terms = {name: "" if value is None and name in ("justification", "region", "latency_class") else value
                 for name, value in terms.items()}  # fmt: skip
        if "checkpoint_minutes" in self.fields:
            minutes = data.get("checkpoint_minutes") if terms["interruptible"] else None
            terms["checkpoint_seconds"] = None if minutes is None else round(minutes * 60)
        if "accuracy_loss_limit" in self.fields:
            text = data.get("accuracy_loss_limit") or ""
            try:
                terms["accuracy_loss_limit"] = (
                    workloads.parse_number("accuracy_loss_limit", text) if text.strip() else None
                )
            except InputError as error:
                terms["accuracy_loss_limit"] = None
                self.refuse(error)
        return terms

    def refuse(self, error: InputError) -> None:
        """Show an error of the declaration or the service at its field, in the words of the form."""
        name = self.RENAMED.get(error.field, error.field)
        if name not in self.fields:
            self.add_error(None, error.message.render(gettext))
        elif name not in self.errors:
            label = str(self.fields[name].label)
            message = Message(error.message.template, {**error.message.params, "field": label})
            self.add_error(name, ValidationError(message.render(gettext)))

    def doubts(self) -> list[tuple[str, str]]:
        """(field, what speaks against it): values that may be saved in a draft, and that no estimate can use."""
        return self._doubts(self.cleaned_data)

    def _doubts(self, data: Mapping[str, Any]) -> list[tuple[str, str]]:
        found = []
        model = str(self.clean_workload.get("model", ""))
        if model and not ModelArchitecture.objects.filter(slug=model).exists():
            try:
                resolve_model(model)
            except InputError as error:
                found.append(("model", error.message.render(gettext)))
        need_by = data.get("need_by")
        if need_by is not None and need_by < today():
            text = gettext("%(value)s is before today, %(limit)s") % {
                "value": date_format(need_by),
                "limit": date_format(today()),
            }
            found.append(("need_by", text))
        return found

    def _workload_names(self) -> list[str]:
        """The declared fields, with the week and its file before the months."""
        names = [field.name for field in self.declared]
        at = names.index("load_months") if "load_months" in names else len(names)
        week = [name for name in ("load_week", "load_file") if name in self.fields]
        return [*names[:at], *week, *names[at:]]

    @staticmethod
    def models() -> list[tuple[str, str]]:
        """(name, short name) of the models to choose from."""
        return sorted((row["name"], row["slug"]) for row in architectures().values())

    def service_arguments(self) -> dict[str, Any]:
        """Keywords for the service, the workload as it was typed: the service reads it by the same declaration."""
        found = {"title": self.cleaned_data["title"], "workload": self.workload, **self.terms}
        if "team" in self.fields:
            found["team_id"] = self.cleaned_data["team"].pk
        return found

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """Fields under their headings, in reading order."""
        what: list[str] = [name for name in ("team", "title") if name in self.fields]
        parts: list[tuple[str, list[str]]] = [
            (gettext("What and for whom"), what),
            (gettext("Workload"), self._workload_names()),
            (gettext("When"), list(self.TIMING)),
            (gettext("Conditions"), [name for name in self.LIMITS if name in self.fields]),
            (gettext("Why"), ["justification"]),
        ]
        return [(heading, [self[name] for name in names]) for heading, names in parts]


def _initial(revision: RequestRevision) -> dict[str, Any]:
    """A revision as the form shows it."""
    shown: dict[str, Any] = {"title": revision.request.title}
    for name, value in workloads.told_part(revision.workload).items():
        field = next(
            (field for field in workloads.FIELDS[revision.request.kind] if field.name == name), None
        )
        if name == FIELD:
            if is_week(value):
                shown["load_week"] = profiles.as_text(value["values"])
        elif isinstance(value, list):
            shown[name] = profiles.as_text(value)
        elif isinstance(value, dict):
            shown[name] = json.dumps(value, ensure_ascii=False, indent=1)
        elif field is not None and field.type == "share":
            shown[name] = f"{value * 100:g} %"
        else:
            shown[name] = _number(value)
    for name in RequestRevision.CONTENT:
        if name != "workload":
            shown[name] = getattr(revision, name)
    if revision.checkpoint_seconds is not None:
        shown["checkpoint_minutes"] = revision.checkpoint_seconds / 60
    if revision.accuracy_loss_limit is not None:
        shown["accuracy_loss_limit"] = f"{revision.accuracy_loss_limit * 100:g} %"
    return shown


def _number(value: Any) -> Any:
    """Large figures with their exponent (3e+08), without losing a digit."""
    if isinstance(value, float) and abs(value) >= 1e6 and float(f"{value:g}") == value:
        return f"{value:g}"
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ReasonForm(forms.Form):
    """Why."""

    reason = forms.CharField(
        label=_("Reason"), max_length=2000, widget=forms.Textarea(attrs={"rows": 3})
    )


class OptionalReasonForm(forms.Form):
    """Why, when there is something to say."""

    reason = forms.CharField(
        label=_("Reason"), max_length=2000, required=False, widget=forms.Textarea(attrs={"rows": 3})
    )


class SubmitForm(forms.Form):
    """Why what the team has does not do; asked where the rules say so."""

    use_reason = forms.CharField(
        label=_("Why what the team has does not do"), max_length=2000, required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )  # fmt: skip


class FulfilForm(OptionalReasonForm):
    """How many accelerators were accepted in all."""

    accepted = forms.IntegerField(label=_("Accepted accelerators, in all"), min_value=0)
    field_order = ["accepted", "reason"]
