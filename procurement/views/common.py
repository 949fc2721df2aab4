"""What the pages of this app share: the visible row or 404, the steps on it, and taking one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from core.errors import InputError
from core.forms import refuse
from core.http import SignedInRequest
from core.messages import msg
from core.models import User
from core.refused import say_refusal
from core.templatetags.ui import said
from core.whole import whole
from procurement import policies
from procurement.forms.steps import BY_NAME, MODELS, Step, steps_for
from procurement.models import Asset, Award, Delivery, OrderRevision, PurchaseOrder
from procurement.selectors.award_facts import award_facts
from procurement.selectors.precedence import order_differences

PAGE = 50


def visible(user: User, noun: str, pk: int, rows: Any = None) -> Any:
    """The row, or 404 outside what `user` may see."""
    if noun == "amendment":
        orders = PurchaseOrder.objects.visible_to(user)
        return get_object_or_404(
            OrderRevision.objects.select_related("order"), pk=pk, order__in=orders
        )
    model: Any = MODELS[noun]
    queryset = (rows if rows is not None else model.objects.all()) & model.objects.visible_to(user)
    return get_object_or_404(queryset, pk=pk)


def sees_proof(user: User, asset: Asset) -> bool:
    """Whether `user` may open the delivery, burn-ins and evidence of a unit: a team sees its units, buyers the rest."""
    line = asset.receipt_line
    return line is None or Delivery.objects.visible_to(user).filter(pk=line.delivery_id).exists()


def version_of(request: SignedInRequest) -> int | None:
    """The version the page was drawn with."""
    raw = request.POST.get("version", "")
    return whole(raw)


def buttons(user: User, noun: str, obj: Any) -> list[dict[str, Any]]:
    """Steps for _steps.html: the dialog's id and address, and its form."""
    return [
        {
            "step": step,
            "id": f"{noun}-{obj.pk}-{step.action}",
            "url": reverse("procurement-step", args=[noun, obj.pk, step.action]),
            "form": step.form_for(obj, auto_id=f"{noun}-{obj.pk}-{step.action}-%s"),
            "version": getattr(obj, "version", ""),
        }
        for step in steps_for(user, noun, obj)
    ]


def ask_over(
    steps: list[dict[str, Any]], beyond: bool, told_by: str = "", issue_told_by: str = ""
) -> list[dict[str, Any]]:
    """Steps that may agree to more than was approved: the reason is asked for where it is needed only, beside `told_by`
    (a template). Agreeing itself is offered then only. Issuing an order is asked for beside `issue_told_by`."""
    kept = []
    for row in steps:
        if row["step"].action == "issue":
            row["told_by"] = issue_told_by
        form = row["form"]
        if form is not None and "over_reason" in form.fields:
            if not beyond and row["step"].action == "agree-over":
                continue
            if beyond:
                form.fields["over_reason"].required = True
            else:
                del form.fields["over_reason"]
                row["form"] = form if form.fields else None
            row["told_by"] = told_by
        kept.append(row)
    return kept


def take_step(request: SignedInRequest, noun: str, pk: int, action: str) -> HttpResponse:
    """A page to take one step (GET), and the step itself (POST). Refusals become pages by the middleware."""
    step = BY_NAME.get((noun, action))
    if step is None:
        raise Http404
    obj = visible(request.user, noun, pk)
    # An empty body is an answer too where every field is optional.
    form = step.form_for(obj, request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return _step_page(request, step, obj, form)
    if form is not None and not form.is_valid():
        return _step_page(request, step, obj, form)
    values = dict(form.cleaned_data) if form else {}
    values = {name: value for name, value in values.items() if value is not None}
    try:
        result = step.take(pk, by=request.user, version=version_of(request), values=values)
    except InputError as error:
        if form is None:
            say_refusal(request, error)
            return redirect(target_of(obj))
        refuse(form, error)
        return _step_page(request, step, obj, form)
    if step.action == "complete-ready":
        passed, waiting = result
        messages.success(
            request,
            said(
                msg(
                    "%(n)s units passed; %(waiting)s are not ready.", n=len(passed), waiting=waiting
                )
            ),
        )
    if step.action == "propose-acceptance":
        return redirect(result)
    return redirect(_next(request, obj))


def _next(request: SignedInRequest, obj: Any) -> str:
    """Back to the page the step was taken from when it is one of ours, else to the object's."""
    path = request.POST.get("next", "")
    return path if path.startswith("/procurement/") else target_of(obj)


def target_of(obj: Any) -> str:
    found = obj.order if isinstance(obj, OrderRevision) else obj
    url: str = found.get_absolute_url()
    return url


def _step_page(request: SignedInRequest, step: Step, obj: Any, form: Any) -> HttpResponse:
    context = {
        "step": step,
        "obj": obj,
        "form": form,
        "back": target_of(obj),
        "version": getattr(obj, "version", ""),
    }
    if isinstance(obj, Award) and step.action == "approve":
        context |= {"told_by": "procurement/_award.html", "award_facts": award_facts(obj)}
        if context["award_facts"].is_beyond:
            form.fields["over_reason"].required = True
    if isinstance(obj, PurchaseOrder) and step.action in ("issue", "set-precedence"):
        found = order_differences(obj) if policies.can_read_order_prices(request.user, obj) else []
        context |= (
            {"told_by": "procurement/_issue_warning.html", "differences": found} if found else {}
        )
    status = 422 if request.method == "POST" else 200
    return render(request, "procurement/step.html", context, status=status)
