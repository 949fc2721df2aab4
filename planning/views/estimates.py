"""The quick estimate: a page whose whole state is its address, and the live panel beside a request's form."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from core.errors import DomainError, InputError
from core.http import SignedInRequest
from core.messages import msg
from planning.estimate_page import answer_context
from planning.forms.estimates import MOST_COMPARED, EstimateForm, shown_fields
from planning.selectors.pickers import accelerator_choices, model_choices
from planning.services.estimates import estimate_request
from planning.study.options import request_fields
from planning.study.workloads import BY_SAMPLE, Kind
from planning.workloads import Kind as KindChoices

# Compared when nobody has chosen: a flagship, the one before, the newest, and one without a fast link.
USUAL = ("nvidia-h100-sxm5-80gb", "nvidia-a100-sxm4-80gb", "nvidia-b200-sxm6-hgx", "nvidia-l40s")
FIRST = {
    Kind.PRETRAINING: "model=llama-3-1-8b&tokens=1T",
    Kind.FINETUNING: "model=llama-3-1-8b&tokens=200M",
    Kind.LORA: "model=llama-3-1-8b&tokens=50M",
    Kind.PREFERENCE: "model=llama-3-1-8b&tokens=50M",
    Kind.SAMPLES: "model=resnet-50&samples=115M&precision=fp16",
    Kind.ONLINE_INFERENCE: "model=llama-3-1-8b&requests_per_day=1M&input_tokens=500&output_tokens=200",
    Kind.BATCH_INFERENCE: "model=llama-3-1-8b&items=1M&input_tokens=1000&output_tokens=200&window_hours=8",
    Kind.ONLINE_SAMPLES: "model=sdxl-base-1-0&requests_per_day=20k&latency_seconds=15",
    Kind.BATCH_SAMPLES: "model=vit-l-16&items=100M&window_hours=8",
    Kind.GPU_HOURS: "gpu_hours=5000&accelerators=8",
}


@require_safe
def quick_estimate(request: SignedInRequest) -> HttpResponse:
    """Estimate what the address states. Everything typed is in the address, so the page can be passed on."""
    query = request.GET.copy()
    kind = _kind(query)
    if not set(query) - {"kind", "show"}:
        query = QueryDict(FIRST[kind], mutable=True)
    live = request.htmx and not request.htmx.boosted
    if not live and not query.getlist("accelerator"):
        query.setlist("accelerator", USUAL)
    form = EstimateForm(kind, query, accelerators=() if live else accelerator_choices())
    context: dict[str, Any] = {
        "form": form,
        "kinds": _tabs(kind, query),
        "kind": kind,
        "without_show": _address(form),
    }
    context |= _result(form, request.GET.get("show", ""))
    address = _address(form, show=context["one"].slug if "one" in context else "")
    context["address"] = request.build_absolute_uri(address)
    if live:
        response = render(request, "planning/_estimate_result.html", context)
        response["HX-Replace-Url"] = address
        return response
    context["models"] = model_choices(by_sample=kind in BY_SAMPLE)
    return render(request, "planning/quick_estimate.html", context)


def _kind(query: QueryDict) -> Kind:
    value = query.get("kind", "")
    return Kind(value) if value in set(Kind) else Kind.PRETRAINING


def _result(form: EstimateForm, show: str) -> dict[str, Any]:
    told = form.told()
    told.setdefault("accelerator", list(USUAL))
    try:
        if len(told["accelerator"]) > MOST_COMPARED:
            raise InputError(
                "accelerator",
                msg("At most %(limit)s accelerators are compared on this page", limit=MOST_COMPARED),
                value=len(told["accelerator"]),
                limit=MOST_COMPARED,
            )  # fmt: skip
        return answer_context(estimate_request(told), show=show)
    except DomainError as error:
        return {"elsewhere": form.refuse(error)}


def _address(form: EstimateForm, *, show: str = "") -> str:
    query = QueryDict(mutable=True)
    for name, value in form.told().items():
        query.setlist(name, value if isinstance(value, list) else [value])
    if show:
        query["show"] = show
    return f"{reverse('quick-estimate')}?{query.urlencode()}"


def _tabs(current: Kind, query: QueryDict) -> list[dict[str, Any]]:
    """The kinds as links that keep what the other kind asks too."""
    tabs = []
    for kind in Kind:
        kept = QueryDict(FIRST[kind], mutable=True)
        if kind in BY_SAMPLE or current in BY_SAMPLE:
            told = {"accelerator", "accelerators"}
        else:
            told = set(shown_fields(kind)) - {"kind"}
        names = [name for name in query if name in told and any(query.getlist(name))]
        if {"parameters", "config"} & set(names):
            kept.pop("model", None)
        for name in names:
            kept.setlist(name, query.getlist(name))
        kept["kind"] = kind.value
        tabs.append(
            {
                "label": KindChoices(kind.value).label,
                "url": f"?{kept.urlencode()}",
                "current": kind == current,
            }
        )
    return tabs


@require_http_methods(["GET", "POST"])
def request_estimate(request: SignedInRequest) -> HttpResponse:
    """The live panel beside a request's form: the same estimate from the form's own fields. Nothing is stored."""
    sent = request.POST if request.method == "POST" else request.GET
    kind = _kind(sent if "kind" in sent else request.GET)
    known = request_fields(kind)
    told: dict[str, Any] = {"kind": str(kind)}
    for name in known:
        values = [value for value in sent.getlist(name) if value.strip()]
        if values:
            told[name] = values if name == "accelerator" else values[-1]
    told.setdefault("accelerator", list(USUAL))
    form = EstimateForm(kind, QueryDict(mutable=True), accelerators=())
    try:
        context = answer_context(estimate_request(told))
    except DomainError as error:
        elsewhere = form.refuse(error)
        context = {"refusals": form.refusals, "elsewhere": elsewhere}
    context["details"] = f"{reverse('quick-estimate')}?{_query(told, kind)}"
    return render(request, "planning/_estimate_panel.html", context)


def _query(told: dict[str, Any], kind: Kind) -> str:
    query = QueryDict(mutable=True)
    names = set(shown_fields(kind)) | {"kind"}
    for name, value in told.items():
        if name in names:
            query.setlist(name, value if isinstance(value, list) else [value])
    return query.urlencode()
