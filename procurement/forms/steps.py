"""Every step a person can take on an object, in one table: pages and API offer and run the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Max, Model
from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from core.models import User
from core.organisation import organisation, today
from planning.models import Site
from procurement import policies
from procurement.forms import fields
from procurement.models import (
    Acceptance,
    Asset,
    Award,
    BurnInRun,
    Delivery,
    Invoice,
    PurchaseOrder,
    Quote,
    Rfq,
    Rma,
    Substitution,
    Vendor,
)
from procurement.models.burn_in import KIND_CHOICES
from procurement.models.evidence import EvidenceState
from procurement.models.quotes import LineKind
from procurement.selectors.milestones import unfinished
from procurement.serials import UnitEntry
from procurement.services import (
    acceptance,
    assets,
    award_documents,
    awards,
    burn_in,
    conflicts,
    contract_checklists,
    deliveries,
    draw_downs,
    invoices,
    measurements,
    negotiation,
    order_precedence,
    order_sites,
    orders,
    payments,
    quotes,
    registrations,
    rfqs,
    rmas,
    substitutions,
    vendors,
)
from procurement.states import QuoteStatus, RmaStatus


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `rule` is its action in states.py and policies.py, `run` the service, `form` what it needs to know.

    The form's cleaned data are the service's keywords.
    """

    noun: str
    action: str
    rule: str
    argument: str
    run: Callable[..., Any]
    label: str | Promise
    text: str | Promise = ""
    form: type[forms.Form] | None = None
    tone: str = ""  # primary, danger or none
    versioned: bool = True
    batch: bool = False  # the service takes a list of ids
    shown: bool = True  # as a button on the object's page
    prepare: Callable[[forms.Form, Any], None] | None = None  # start values and hints
    needs_reason: Callable[[Any], bool] | None = (
        None  # whether `reason`, optional else, is needed now
    )

    def form_for(self, obj: Any, data: Any = None, **options: Any) -> forms.Form | None:
        """The step's form for `obj`: what is needed now is marked as needed."""
        if self.form is None:
            return None
        form = self.form(data, **options)
        if self.prepare is not None:
            self.prepare(form, obj)
        if self.needs_reason is not None and self.needs_reason(obj):
            form.fields["reason"].required = True
        return form

    def take(
        self, pk: int, *, by: User, version: int | None = None, values: dict[str, Any] | None = None
    ) -> Any:
        """Run the service."""
        known: dict[str, Any] = dict(values or {})
        if self.versioned and version is not None:
            known["version"] = version
        return self.run(**{self.argument: [pk] if self.batch else pk}, by=by, **known)


def _receive_replacement(
    *, rma_id: int, by: User, serial: str, uuid: str = "", slot: str = "", **rest: Any
) -> Any:
    return rmas.receive_replacement(
        rma_id=rma_id, by=by, unit=UnitEntry(serial, uuid, slot=slot), **rest
    )


def _payment(form: forms.Form, invoice: Invoice) -> None:
    """Today and what is open to start with; of a foreign payment the rate or the reference is asked for."""
    base = organisation().currency
    form.initial = {"paid_on": today(), "amount": invoice.open_amount.amount, **form.initial}
    form.fields["amount"].label = f"{form.fields['amount'].label} ({invoice.currency})"
    if invoice.currency == base:
        del form.fields["rate"]
        return
    form.fields["rate"].help_text = gettext(
        "How many %(base)s for 1 %(currency)s. Without it, give the bank's reference: then the rate of that day holds."
    ) % {"base": base, "currency": invoice.currency}


def _conflict(form: forms.Form, rfq: Rfq) -> None:
    """Invited vendors to choose from."""
    rows = rfq.invitations.select_related("vendor").order_by("vendor__name")
    form.fields["vendor_id"].widget = forms.Select(
        choices=[("", "–"), *((row.vendor_id, row.vendor.name) for row in rows)]
    )


def _concession(form: forms.Form, rfq: Rfq) -> None:
    """Vendors with a standing quote to choose from; the last round and today to start with."""
    rows = rfq.quotes.filter(status=QuoteStatus.SUBMITTED).select_related("vendor")
    form.fields["vendor_id"].widget = forms.Select(
        choices=[(row.vendor_id, row.vendor.name) for row in rows]
    )
    last = rfq.concessions.aggregate(last=Max("round"))["last"] or 1
    form.initial = {"round": last, "agreed_on": today(), **form.initial}


def _lines(form: forms.Form, order: PurchaseOrder, *kinds: str) -> None:
    """Lines to choose from."""
    rows = order.lines.filter(kind__in=kinds) if kinds else order.lines.all()
    form.fields["position"].widget = forms.Select(
        choices=[(row.position, str(row)) for row in rows]
    )


def _commitment(form: forms.Form, order: PurchaseOrder) -> None:
    _lines(form, order, LineKind.CLOUD)
    form.initial = {"month": today().replace(day=1), **form.initial}


def _sites(form: forms.Form, order: PurchaseOrder) -> None:
    """Sites to choose from."""
    names = Site.objects.in_use().order_by("name").values_list("name", flat=True)
    form.fields["site"].widget = forms.Select(choices=[(name, name) for name in names])
    if order.site is not None:
        form.initial = {"site": order.site.name, **form.initial}


def _precedence(form: forms.Form, order: PurchaseOrder) -> None:
    form.initial = {"precedence": order.precedence, **form.initial}


def _registration(form: forms.Form, delivery: Delivery) -> None:
    form.initial = {"registered_on": today(), **form.initial}


def _kinds(form: forms.Form, order: PurchaseOrder) -> None:
    """Kinds of units that the order brings."""
    known = dict(KIND_CHOICES)
    form.fields["kind"].widget = forms.Select(
        choices=[(kind, known[kind]) for kind in contract_checklists.kinds_of(order)]
    )


def _files_of(form: forms.Form, delivery: Delivery) -> None:
    """The delivery's files that were read, the newest first."""
    rows = delivery.evidence.filter(state=EvidenceState.READ, locked_at=None).select_related("file")
    form.fields["evidence_id"].widget = forms.Select(
        choices=[(row.pk, str(row)) for row in rows.defer("result").order_by("-pk")[:200]]
    )


REASON, MAYBE = fields.ReasonForm, fields.OptionalReasonForm

STEPS: tuple[Step, ...] = (
    # vendor
    Step("vendor", "add-contact", "edit", "vendor_id", vendors.add_contact, _("Add contact"), form=fields.ContactForm),
    Step("vendor", "block", "block", "vendor_id", vendors.block_vendor, _("Block"),
         _("No quote, award or order from now on."), REASON, "danger"),
    Step("vendor", "unblock", "unblock", "vendor_id", vendors.unblock_vendor, _("Unblock"), form=REASON),
    # rfq
    Step("rfq", "publish", "publish", "rfq_id", rfqs.publish_rfq, _("Publish"),
         _("What is asked and how it is judged can no longer change."), tone="primary"),
    Step("rfq", "extend", "extend", "rfq_id", rfqs.extend_rfq, _("Move the deadline"),
         _("Only later, and only before it has passed."), fields.DeadlineForm),
    Step("rfq", "close", "close", "rfq_id", rfqs.close_rfq, _("Close"),
         _("No more quotes are taken. Before the deadline a reason is needed; sealed bids stay open until it."),
         MAYBE, "primary", needs_reason=lambda rfq: not rfq.is_due),
    Step("rfq", "open", "open_bids", "rfq_id", rfqs.open_bids, _("Open the bids"),
         _("Exchange rates are frozen. Sealed bids open once enough different people have done this."), tone="primary"),
    Step("rfq", "state-conflict", "state_conflict", "rfq_id", conflicts.state_conflict,
         _("State conflicts of interest"), _("It is kept with the award and read by the auditor."),
         fields.ConflictForm, prepare=_conflict),
    Step("rfq", "record-concession", "record_concession", "rfq_id", negotiation.record_concession,
         _("Note a concession"), _("The quote itself changes by a new version of it only."), fields.ConcessionForm,
         prepare=_concession),
    Step("rfq", "cancel", "cancel", "rfq_id", rfqs.cancel_rfq, _("Cancel the RFQ"),
         _("Prices that were never opened stay sealed."), REASON, "danger"),
    # quote
    Step("quote", "extend", "replace", "quote_id", quotes.extend_quote, _("Extend the validity"),
         _("A new version with the same prices and terms."), fields.ValidityForm),
    Step("quote", "withdraw", "withdraw", "quote_id", quotes.withdraw_quote, pgettext_lazy("procurement", "Withdraw"),
         form=REASON, tone="danger"),
    Step("quote", "disqualify", "disqualify", "quote_id", quotes.disqualify_quote, _("Disqualify"), form=REASON,
         tone="danger"),
    # award
    Step("award", "approve", "approve_award", "award_id", awards.approve_award, _("Approve the award"),
         _("Draft orders are made on exactly the terms of the quotes."), fields.OverForm, "primary"),
    Step("award", "reject", "reject_award", "award_id", awards.reject_award, _("Reject the award"), form=REASON,
         tone="danger"),
    Step("award", "withdraw", "withdraw_award", "award_id", awards.withdraw_award, _("Withdraw the award"),
         form=REASON, tone="danger"),
    Step("award", "send-letters", "send_letters", "award_id", award_documents.send_letters, _("Send the letters"),
         _("Each vendor that was not chosen is written to once, in its language, at a contact's address.")),
    # order
    Step("order", "issue", "issue", "order_id", orders.issue_order, pgettext_lazy("order", "Issue"),
         _("The order gets its number and binds; its amount is committed against the budget."), tone="primary"),
    Step("order", "agree-over", "agree_over", "order_id", orders.agree_over, _("Agree to the higher amount"),
         _("Orders for the request may then go up to this amount. It is audited."), fields.HigherForm, "danger"),
    Step("order", "set-precedence", "set_precedence", "order_id", order_precedence.set_precedence,
         _("Say which terms hold"),
         _("Where the quote says less than a clause. The warranty of what is received follows it."),
         fields.PrecedenceForm, prepare=_precedence),
    Step("order", "set-checklist-item", "edit_checklist", "order_id", contract_checklists.set_item,
         _("Change the acceptance checklist"),
         _("Of this contract only, until the order is issued; the difference to the template stays visible."),
         fields.ChecklistItemForm, prepare=_kinds),
    Step("order", "acknowledge", "acknowledge", "order_id", orders.acknowledge_order, _("Note the vendor's promise"),
         form=fields.PromiseForm),
    Step("order", "deliver-to", "deliver_to", "order_id", order_sites.deliver_to, _("Say where it is delivered"),
         _("Its cards count at this site in the capacity calendar from the promised day on."), fields.SiteForm,
         prepare=_sites),
    Step("order", "close", "close", "order_id", orders.close_order, _("Close the order"),
         _("What is missing is closed short, with a reason; what is left of the commitment is released."), MAYBE,
         needs_reason=lambda order: bool(unfinished(order))),
    Step("order", "cancel", "cancel", "order_id", orders.cancel_order, _("Cancel the order"),
         _("The commitment is released. This cannot be undone."), REASON, "danger"),
    Step("order", "draw-down", "draw_down", "order_id", draw_downs.record_draw_down, _("Note what was used"),
         _("Of a cloud commitment, month by month; it stands for receipt and acceptance."), fields.DrawDownForm,
         prepare=_commitment),
    Step("order", "substitute", "propose_substitution", "order_id", substitutions.propose_substitution,
         _("Ask for a substitution"), _("Another part than ordered is received after consent only."),
         fields.SubstitutionForm, prepare=_lines),
    # substitution
    Step("substitution", "consent", "consent", "substitution_id", substitutions.consent_to_substitution,
         _("Consent"), _("The other part may be received at the price ordered."), tone="primary"),
    Step("substitution", "refuse", "refuse", "substitution_id", substitutions.refuse_substitution, _("Refuse"),
         form=REASON, tone="danger"),
    # delivery
    Step("delivery", "turn-away", "turn_away", "delivery_id", deliveries.turn_away_delivery, _("Turn away"),
         _("It does not count as received."), REASON, "danger"),
    Step("delivery", "reverse", "reverse", "delivery_id", deliveries.reverse_delivery, _("Reverse the receipt"),
         _("Its units are voided and their serial numbers free again."), REASON, "danger"),
    Step("delivery", "start-burn-in", "start_burn_in", "delivery_id", burn_in.start_burn_in, _("Start burn-in"),
         _("Every unit that waits is installed, and its run starts."), fields.PlaceForm, "primary",
         versioned=False, shown=False),
    Step("delivery", "note-measurement", "upload_evidence", "delivery_id", measurements.note_measurement,
         _("Note a measured figure"),
         _("Of a file that no reader takes it from; the file stays named with it."), fields.MeasurementForm,
         versioned=False, prepare=_files_of),
    Step("delivery", "complete-ready", "start_burn_in", "delivery_id", burn_in.complete_ready, _("Pass what is proven"),
         _("Runs with nothing open pass; the others go on."), versioned=False),
    Step("delivery", "propose-acceptance", "propose_acceptance", "delivery_id", acceptance.propose_acceptance,
         _("Propose acceptance"), _("Units whose burn-in passed are proposed; a second person signs."),
         fields.ExclusionForm, "primary", versioned=False, shown=False),
    Step("delivery", "register-warranty", "register_warranty", "delivery_id", registrations.register_warranty,
         _("Note the registration"), _("The warranty of these units starts on that day."), fields.RegistrationForm,
         "primary", prepare=_registration),
    # asset
    Step("asset", "install", "install", "asset_ids", assets.install_assets, _("Install"), form=fields.InstallForm,
         versioned=False, batch=True),
    Step("asset", "report-fault", "report_fault", "asset_id", assets.report_fault, _("Report a fault"),
         _("The unit leaves service today and an RMA is drafted."), fields.FaultForm, "danger"),
    Step("asset", "retire", "retire", "asset_id", assets.retire_asset, _("Retire"), form=REASON, tone="danger"),
    # burn-in
    Step("burn-in", "decide-item", "decide_item", "run_id", burn_in.decide_item, _("Note a result"),
         form=fields.ItemForm, versioned=False, shown=False),
    Step("burn-in", "waive-item", "waive_item", "run_id", burn_in.waive_item, _("Waive an item"),
         form=fields.WaiveForm, versioned=False, shown=False),
    Step("burn-in", "interrupt", "interrupt", "run_id", burn_in.interrupt_run, _("Interrupted"), form=REASON),
    Step("burn-in", "resume", "resume", "run_id", burn_in.resume_run, _("Resume"), _("The clock starts again.")),
    Step("burn-in", "complete", "complete", "run_id", burn_in.complete_run, pgettext_lazy("burn-in", "Pass"),
         tone="primary"),
    Step("burn-in", "fail", "fail", "run_id", burn_in.fail_run, pgettext_lazy("burn-in", "Fail"),
         _("The unit is defective and an RMA is drafted; the others go on."), REASON, "danger"),
    Step("burn-in", "abandon", "abandon", "run_id", burn_in.abandon_run, _("Abandon"),
         _("No verdict; a new run may start."), REASON, "danger"),
    # acceptance
    Step("acceptance", "sign", "sign_acceptance", "acceptance_id", acceptance.sign_acceptance, _("Sign the acceptance"),
         _("Units go into service, their warranty starts, and the accepted quantity may be paid."), tone="primary"),
    Step("acceptance", "refuse", "refuse_acceptance", "acceptance_id", acceptance.refuse_acceptance, _("Refuse"),
         form=REASON, tone="danger"),
    Step("acceptance", "withdraw", "withdraw_acceptance", "acceptance_id", acceptance.withdraw_acceptance,
         pgettext_lazy("procurement", "Withdraw"),
         form=REASON, tone="danger"),
    # invoice
    Step("invoice", "match", "match_invoice", "invoice_id", invoices.match_invoice, _("Match"),
         _("Compared with order, receipt and acceptance."), tone="primary"),
    Step("invoice", "override", "override_invoice", "invoice_id", invoices.override_invoice, _("Override"),
         _("Price or tax differences only; never more than was accepted."), REASON, "danger"),
    Step("invoice", "approve", "approve_invoice", "invoice_id", invoices.approve_invoice, _("Approve for payment"),
         tone="primary"),
    Step("invoice", "pay", "pay_invoice", "invoice_id", payments.pay_invoice, _("Note the payment"),
         _("The budget's actuals grow by what was paid. Less than what is open is a part payment."),
         fields.PaymentForm, "primary", prepare=_payment),
    Step("invoice", "void", "void_invoice", "invoice_id", invoices.void_invoice, _("Void"), form=REASON,
         tone="danger"),
    # rma
    Step("rma", "file", "file_rma", "rma_id", rmas.file_rma, _("File with the vendor"),
         _("The evidence is locked. A denied claim is filed again with a reason."), MAYBE, "primary",
         needs_reason=lambda rma: rma.status == RmaStatus.DENIED),
    Step("rma", "authorise", "authorise_rma", "rma_id", rmas.authorise_rma, _("Vendor authorised it"),
         form=fields.AuthoriseForm),
    Step("rma", "deny", "deny_rma", "rma_id", rmas.deny_rma, _("Vendor denied it"), form=REASON, tone="danger"),
    Step("rma", "ship", "ship_rma", "rma_id", rmas.ship_rma, _("Sent to the vendor"), form=fields.TrackingForm),
    Step("rma", "receive-replacement", "receive_replacement", "rma_id", _receive_replacement,
         _("Replacement came"), _("A new unit in the old one's place; it burns in itself."), fields.ReplacementForm,
         "primary"),
    Step("rma", "receive-repaired", "receive_repaired", "rma_id", rmas.receive_repaired, _("Same unit came back"),
         _("It burns in again before it serves."), fields.RepairedForm),
    Step("rma", "credit", "credit_rma", "rma_id", rmas.credit_rma, _("Credited"),
         _("The unit is written off."), fields.NoteForm, "danger"),
    Step("rma", "withdraw", "withdraw_rma", "rma_id", rmas.withdraw_rma, pgettext_lazy("procurement", "Withdraw"),
         form=REASON, tone="danger"),
)  # fmt: skip

# An amendment has no page of its own: it is decided on its order's.
AMENDMENT_STEPS: tuple[Step, ...] = (
    Step("amendment", "approve", "approve_amendment", "revision_id", orders.approve_amendment,
         _("Approve the amendment"), form=fields.OverForm, tone="primary", versioned=False),
    Step("amendment", "reject", "reject_amendment", "revision_id", orders.reject_amendment,
         _("Reject the amendment"), form=REASON, tone="danger", versioned=False),
)  # fmt: skip

MODELS: dict[str, type[Model]] = {
    "vendor": Vendor,
    "rfq": Rfq,
    "quote": Quote,
    "award": Award,
    "order": PurchaseOrder,
    "substitution": Substitution,
    "delivery": Delivery,
    "asset": Asset,
    "burn-in": BurnInRun,
    "acceptance": Acceptance,
    "invoice": Invoice,
    "rma": Rma,
}
BY_NAME: dict[tuple[str, str], Step] = {
    (step.noun, step.action): step for step in (*STEPS, *AMENDMENT_STEPS)
}


def steps_for(user: User, noun: str, obj: Any) -> list[Step]:
    """Steps that `user` may take on `obj` now."""
    return [
        step
        for step in (*STEPS, *AMENDMENT_STEPS)
        if step.noun == noun and step.shown and policies.can(user, step.rule, obj)
    ]
