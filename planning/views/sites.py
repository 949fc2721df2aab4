"""Pages of the organisation's machine rooms."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core import stale
from core.audit import trail
from core.errors import InputError, StaleData
from core.forms import refuse
from core.http import SignedInRequest
from core.policies import require
from core.whole import whole
from planning import policies, tables
from planning.forms.sites import SiteForm
from planning.models import Site
from planning.services.sites import save_site


@require_safe
def site_list(request: SignedInRequest) -> HttpResponse:
    """Every site with what is free."""
    context = {
        "rows": [tables.site_row(site) for site in Site.objects.all()],
        "may_keep": policies.can_keep_sites(request.user),
    }
    return render(request, "planning/site_list.html", context)


def site_create(request: SignedInRequest) -> HttpResponse:
    """Describe a site."""
    require(policies.can_keep_sites(request.user))
    return _form(request, None)


def site_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One site; who keeps sites changes it here."""
    site = get_object_or_404(Site, pk=pk)
    if request.method == "POST" or policies.can_keep_sites(request.user):
        return _form(request, site)
    return render(
        request, "planning/site_detail.html", {"site": site, "row": tables.site_row(site)}
    )


def _form(request: SignedInRequest, site: Site | None) -> HttpResponse:
    form = SiteForm(request.POST or None, instance=site)
    old: StaleData | None = None
    if request.method == "POST" and form.is_valid():
        raw = request.POST.get("version", "")
        data = dict(form.cleaned_data)
        try:
            saved = save_site(
                by=request.user,
                site_id=None if site is None else site.pk,
                version=whole(raw),
                name=data.pop("name"),
                **data,
            )
        except StaleData as error:
            old = error
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(request, _("The site was saved."))
            return redirect(saved)
    context: dict[str, Any] = {
        "form": form,
        "site": site,
        "version": "" if site is None else request.POST.get("version", site.version),
        "trail": [] if site is None else trail(site)[:30],
    }
    if old is not None and site is not None:
        # What was typed stands in the form; saved again it goes onto what is there now.
        context |= {"stale": old, "changes": stale.rows(old), "version": site.version}
        return render(request, "planning/site_form.html", context, status=409)
    return render(request, "planning/site_form.html", context, status=422 if form.errors else 200)
