"""Comments, watching and papers of a request."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.errors import InputError
from core.files import download
from core.forms import refuse
from core.http import SignedInRequest
from core.refused import say_errors
from planning.forms.discussion import CommentForm, FileForm
from planning.services import discussion
from planning.services.discussion import readable_file
from planning.views.requests import detail_context, visible


@require_POST
def comment_add(request: SignedInRequest, pk: int) -> HttpResponse:
    found = visible(request, pk)
    form = CommentForm(request.POST)
    form.is_valid()
    try:
        discussion.comment(request_id=pk, text=form.cleaned_data["text"], by=request.user)
    except InputError as error:
        refuse(form, error)
        return _again(request, pk, comment_form=form)
    return redirect(f"{found.get_absolute_url()}#comments")


def _again(request: SignedInRequest, pk: int, **forms: Any) -> HttpResponse:
    """The request's page with what was typed and what is wrong with it."""
    for form in forms.values():
        say_errors(request, form)
    context = {**detail_context(request, visible(request, pk)), **forms}
    return render(request, "planning/request_detail.html", context, status=422)


@require_POST
def watch_set(request: SignedInRequest, pk: int) -> HttpResponse:
    """Begin or end watching."""
    found = visible(request, pk)
    if request.POST.get("watch") == "no":
        discussion.unwatch(request_id=pk, by=request.user)
        messages.success(request, _("You are no longer told of changes."))
    else:
        discussion.watch(request_id=pk, by=request.user)
        messages.success(request, _("You will be told when its state changes or someone comments."))
    return redirect(found)


@require_POST
def file_add(request: SignedInRequest, pk: int) -> HttpResponse:
    found = visible(request, pk)
    form = FileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _again(request, pk, file_form=form)
    try:
        discussion.attach(
            request_id=pk,
            upload=form.cleaned_data["file"],
            note=form.cleaned_data["note"],
            by=request.user,
        )
    except InputError as error:
        refuse(form, error)
        return _again(request, pk, file_form=form)
    messages.success(request, _("The file was added."))
    return redirect(f"{found.get_absolute_url()}#files")


@require_safe
def file_read(request: SignedInRequest, pk: int, file: int) -> HttpResponseBase:
    """A paper, to those who may see the request; for everyone else it does not exist, and the attempt is recorded."""
    row = readable_file(request_id=pk, attachment_id=file, by=request.user, path=request.path)
    if row is None:
        raise Http404
    return download(row.file)


@require_POST
def file_remove(request: SignedInRequest, pk: int, file: int) -> HttpResponse:
    found = visible(request, pk)
    get_object_or_404(found.attachments, pk=file)
    discussion.remove_attachment(attachment_id=file, by=request.user)
    messages.success(request, _("The file was taken away."))
    return redirect(f"{found.get_absolute_url()}#files")
