"""Every state and every step between states of this app, in one place: the code asks it, a test walks it.

A rule says: from which states, to which (none: the state stays), and who. Guards and effects are told in words here
and held by the service that bears the action's name. Separation of duties is in `procurement.policies`, checked on the
person at the moment of the act.
"""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.machines import Rule


class Actor(StrEnum):
    """In which capacity a person acts. A superuser without a role has none."""

    BUYER = "buyer"  # Procurement
    APPROVER = "approver"  # Approver, in every team concerned or for the whole organisation
    OPERATIONS = "operations"  # receives, installs, burns in
    FINANCE = "finance"  # accounts payable and controller
    VENDOR = "vendor"  # with its key to one RFQ, on its own quote only
    SYSTEM = "system"


class VendorStatus(models.TextChoices):
    ACTIVE = "active", pgettext_lazy("vendor", "Active")
    BLOCKED = "blocked", pgettext_lazy("vendor", "Blocked")


class RfqStatus(models.TextChoices):
    DRAFT = "draft", pgettext_lazy("state", "Draft")
    OPEN = "open", _("Open for quotes")
    CLOSED = "closed", _("Closed, not opened")
    OPENED = "opened", _("Opened, under evaluation")
    AWARDED = "awarded", _("Awarded")
    UNAWARDED = "unawarded", _("Closed without award")
    CANCELLED = "cancelled", pgettext_lazy("state", "Cancelled")


class QuoteStatus(models.TextChoices):
    SUBMITTED = "submitted", pgettext_lazy("state", "Submitted")
    LATE = "late", pgettext_lazy("quote", "Late, not scored")
    SUPERSEDED = "superseded", _("Superseded")
    WITHDRAWN = "withdrawn", _("Withdrawn")
    DISQUALIFIED = "disqualified", _("Disqualified")
    SELECTED = "selected", pgettext_lazy("quote", "Selected")
    NOT_SELECTED = "not_selected", pgettext_lazy("quote", "Not selected")


class AwardStatus(models.TextChoices):
    PROPOSED = "proposed", _("Waiting for approval")
    APPROVED = "approved", pgettext_lazy("state", "Approved")
    REJECTED = "rejected", pgettext_lazy("state", "Rejected")
    WITHDRAWN = "withdrawn", _("Withdrawn")


class OrderStatus(models.TextChoices):
    DRAFT = "draft", pgettext_lazy("state", "Draft")
    ISSUED = "issued", pgettext_lazy("order", "Issued")
    ACKNOWLEDGED = "acknowledged", _("Acknowledged by the vendor")
    CLOSED = "closed", pgettext_lazy("state", "Closed")
    CANCELLED = "cancelled", pgettext_lazy("state", "Cancelled")


class RevisionStatus(models.TextChoices):
    PROPOSED = "proposed", _("Waiting for approval")
    BINDING = "binding", _("Binding")
    SUPERSEDED = "superseded", _("Superseded")
    REJECTED = "rejected", pgettext_lazy("state", "Rejected")


class SubstitutionStatus(models.TextChoices):
    PROPOSED = "proposed", _("Waiting for consent")
    CONSENTED = "consented", _("Consented")
    REFUSED = "refused", _("Refused")


class DeliveryStatus(models.TextChoices):
    EXPECTED = "expected", _("Expected")
    POSTED = "posted", pgettext_lazy("delivery", "Received")
    REJECTED = "rejected", _("Turned away")
    REVERSED = "reversed", _("Reversed")


class AssetStatus(models.TextChoices):
    RECEIVED = "received", pgettext_lazy("asset", "Received")
    INSTALLED = "installed", _("Installed")
    BURNED_IN = "burned_in", _("Burn-in passed")
    IN_SERVICE = "in_service", _("Accepted, in service")
    DEFECTIVE = "defective", _("Defective")
    AT_VENDOR = "at_vendor", _("At the vendor")
    REPLACED = "replaced", _("Replaced")
    RETIRED = "retired", _("Retired")
    VOIDED = "voided", _("Voided")


class BurnInStatus(models.TextChoices):
    RUNNING = "running", _("Running")
    INTERRUPTED = "interrupted", _("Interrupted")
    PASSED = "passed", _("Passed")
    FAILED = "failed", _("Failed")
    ABANDONED = "abandoned", _("Abandoned")


class AcceptanceStatus(models.TextChoices):
    PROPOSED = "proposed", _("Waiting for signature")
    ACCEPTED = "accepted", _("Accepted")
    PART_ACCEPTED = "part_accepted", _("Accepted in part")
    REFUSED = "refused", _("Refused")
    WITHDRAWN = "withdrawn", _("Withdrawn")


class InvoiceStatus(models.TextChoices):
    CAPTURED = "captured", _("Captured")
    EXCEPTION = "exception", _("Does not match")
    MATCHED = "matched", _("Matched")
    APPROVED = "approved", _("Approved for payment")
    PAID = "paid", _("Paid")
    VOID = "void", _("Void")


class RmaStatus(models.TextChoices):
    DRAFT = "draft", pgettext_lazy("state", "Draft")
    FILED = "filed", _("Filed with the vendor")
    AUTHORISED = "authorised", _("Authorised by the vendor")
    DENIED = "denied", _("Denied by the vendor")
    SHIPPED = "shipped", _("Sent to the vendor")
    REPLACEMENT_IN = "replacement_in", _("Replacement received")
    RESOLVED = "resolved", _("Resolved")
    WITHDRAWN = "withdrawn", _("Withdrawn")


A = Actor
V, F, Q, W = VendorStatus, RfqStatus, QuoteStatus, AwardStatus
P, R, D, S = OrderStatus, RevisionStatus, DeliveryStatus, AssetStatus
U = SubstitutionStatus
B, C, N, M = BurnInStatus, AcceptanceStatus, InvoiceStatus, RmaStatus

VENDOR_RULES: tuple[Rule, ...] = (
    Rule("edit", (V.ACTIVE,), (), (A.BUYER,)),
    Rule("block", (V.ACTIVE,), (V.BLOCKED,), (A.BUYER, A.FINANCE), "a reason", "no quote, award or order from now on"),
    Rule("unblock", (V.BLOCKED,), (V.ACTIVE,), (A.FINANCE, A.APPROVER), "a reason; not by the one who blocked"),
)  # fmt: skip

RFQ_RULES: tuple[Rule, ...] = (
    Rule("edit", (F.DRAFT,), (), (A.BUYER,)),
    Rule("publish", (F.DRAFT,), (F.OPEN,), (A.BUYER,),
         "weights add up to 100; the deadline is ahead; enough vendors invited", "criteria frozen with their hash"),
    Rule("extend", (F.OPEN,), (), (A.BUYER,), "before the deadline; only later; a reason"),
    Rule("let_in", (F.OPEN,), (), (A.BUYER,), "vendor invited and active; before the deadline",
         "the vendor's key, shown once; the one before ends"),
    Rule("record_quote", (F.OPEN, F.CLOSED, F.OPENED), (), (A.BUYER, A.VENDOR),
         "vendor invited and active; after the deadline it is kept as late and not scored"),
    Rule("close", (F.OPEN,), (F.CLOSED,), (A.BUYER, A.SYSTEM),
         "sealed: only at the deadline; else earlier with a reason", "quotes can no longer change"),
    Rule("open_bids", (F.CLOSED,), (F.CLOSED, F.OPENED), (A.BUYER, A.APPROVER, A.FINANCE),
         "sealed: as many different people as the policy asks for", "exchange rates frozen"),
    Rule("state_conflict", (F.OPEN, F.CLOSED, F.OPENED), (), (A.BUYER, A.APPROVER, A.FINANCE),
         "a conflict is named", "who declared one takes no part in the award"),
    Rule("record_concession", (F.OPENED,), (), (A.BUYER,), "a vendor with a standing quote; rounds without gaps"),
    Rule("propose_award", (F.OPENED,), (), (A.BUYER,),
         "no other award stands; quotes valid; quantities as asked, or to none; a written reason"),
    Rule("award", (F.OPENED,), (F.AWARDED, F.UNAWARDED), (A.SYSTEM,), "the award is approved; to none: closed without"),
    Rule("cancel", (F.DRAFT, F.OPEN, F.CLOSED, F.OPENED), (F.CANCELLED,), (A.BUYER,),
         "a reason; no award stands", "prices stay sealed if never opened"),
)  # fmt: skip

QUOTE_RULES: tuple[Rule, ...] = (
    Rule("replace", (Q.SUBMITTED, Q.SELECTED), (Q.SUPERSEDED,), (A.BUYER, A.VENDOR),
         "by a new version before the deadline, or to extend the validity"),
    Rule("withdraw", (Q.SUBMITTED,), (Q.WITHDRAWN,), (A.BUYER, A.VENDOR), "before the deadline; a reason"),
    Rule("disqualify", (Q.SUBMITTED,), (Q.DISQUALIFIED,), (A.APPROVER,),
         "after opening; not by the owner of the RFQ; a reason"),
    Rule("select", (Q.SUBMITTED,), (Q.SELECTED, Q.NOT_SELECTED), (A.SYSTEM,), "the award is approved"),
)  # fmt: skip

AWARD_RULES: tuple[Rule, ...] = (
    Rule("approve_award", (W.PROPOSED,), (W.APPROVED,), (A.APPROVER,),
         "not the RFQ's owner nor the proposer; quotes unchanged and valid; with tax within what was approved and its "
         "tolerance, or more with a reason where the policy allows it",
         "a draft order for each vendor; of an award to none no order, the requests are free for another RFQ"),
    Rule("reject_award", (W.PROPOSED,), (W.REJECTED,), (A.APPROVER,), "the same people; a reason"),
    Rule("withdraw_award", (W.PROPOSED,), (W.WITHDRAWN,), (A.BUYER,), "a reason"),
    Rule("send_letters", (W.APPROVED,), (), (A.BUYER,), "letters made; a contact of the vendor with an address",
         "each vendor that was not chosen is written to once"),
)  # fmt: skip

ORDER_RULES: tuple[Rule, ...] = (
    Rule("issue", (P.DRAFT,), (P.ISSUED,), (A.BUYER,),
         "quote valid and unchanged; terms equal to it; vendor not blocked; within what was approved; budget holds",
         "number from the gap-free sequence; budget committed; vendor's copy made"),
    Rule("agree_over", (P.DRAFT,), (), (A.APPROVER,),
         "more than was approved and its tolerance; the policy lets an approver agree; a reason",
         "orders for the request may go up to this amount"),
    Rule("edit_checklist", (P.DRAFT,), (), (A.BUYER,), "a reason; the hours and the promises stand",
         "a further version of the contract's checklist; pinned when the order is issued"),
    Rule("set_precedence", (P.DRAFT,), (), (A.BUYER,), "clauses or quote, other than before; a reason",
         "the warranty of what is received follows it"),
    Rule("acknowledge", (P.ISSUED,), (P.ACKNOWLEDGED,), (A.BUYER,), "the promised day is given"),
    Rule("deliver_to", (P.DRAFT, P.ISSUED, P.ACKNOWLEDGED), (), (A.BUYER,),
         "a site that takes new servers, another than before", "its cards count there in the capacity calendar"),
    Rule("amend", (P.ISSUED, P.ACKNOWLEDGED), (), (A.BUYER,),
         "no other amendment waits; not below what was received or invoiced; a reason"),
    Rule("announce", (P.ISSUED, P.ACKNOWLEDGED), (), (A.BUYER,),
         "announced and received together within the order"),
    Rule("receive", (P.ISSUED, P.ACKNOWLEDGED), (), (A.OPERATIONS,),
         "not by the one who issued; within tolerance; serial numbers new; another part with consent only",
         "assets and their warranties made, once"),
    Rule("propose_substitution", (P.ISSUED, P.ACKNOWLEDGED), (), (A.BUYER,),
         "a line of the order, another part than ordered, why; once for each part"),
    Rule("draw_down", (P.ISSUED, P.ACKNOWLEDGED), (), (A.OPERATIONS, A.FINANCE),
         "a cloud line; once a month, again with a reason; within the commitment and the tolerance; not by the issuer",
         "counts as received and accepted"),
    Rule("capture_invoice", (P.ISSUED, P.ACKNOWLEDGED), (), (A.FINANCE,),
         "number not seen before from this vendor; currency of the order"),
    Rule("close", (P.ISSUED, P.ACKNOWLEDGED), (P.CLOSED,), (A.FINANCE,),
         "every line received and paid, or closed short with a reason", "what is left of the commitment released"),
    Rule("cancel", (P.DRAFT,), (P.CANCELLED,), (A.BUYER,), "a reason"),
    Rule("cancel", (P.ISSUED, P.ACKNOWLEDGED), (P.CANCELLED,), (A.APPROVER,),
         "a reason; nothing received or invoiced; not by the issuer", "commitment released"),
)  # fmt: skip

REVISION_RULES: tuple[Rule, ...] = (
    Rule("approve_amendment", (R.PROPOSED,), (R.BINDING,), (A.APPROVER,),
         "not by the one who proposed; within what was approved, as for an award",
         "the lines change; the budget's commitment follows"),
    Rule("reject_amendment", (R.PROPOSED,), (R.REJECTED,), (A.APPROVER,), "a reason; not by the one who proposed"),
    Rule("supersede", (R.BINDING,), (R.SUPERSEDED,), (A.SYSTEM,)),
)  # fmt: skip

SUBSTITUTION_RULES: tuple[Rule, ...] = (
    Rule("consent", (U.PROPOSED,), (U.CONSENTED,), (A.APPROVER,), "not by the one who proposed it",
         "the other part may be received"),
    Rule("refuse", (U.PROPOSED,), (U.REFUSED,), (A.APPROVER,), "a reason; not by the one who proposed it"),
)  # fmt: skip

DELIVERY_RULES: tuple[Rule, ...] = (
    Rule("post", (D.EXPECTED,), (D.POSTED,), (A.OPERATIONS,), "as receive"),
    Rule("turn_away", (D.EXPECTED,), (D.REJECTED,), (A.OPERATIONS,), "a reason"),
    Rule("reverse", (D.POSTED,), (D.REVERSED,), (A.OPERATIONS,),
         "a reason; not by the one who received; no unit installed", "assets voided"),
    Rule("upload_evidence", (D.EXPECTED, D.POSTED, D.REJECTED), (), (A.OPERATIONS,),
         "not the same file for the same server twice; before the receipt: photos"),
    Rule("start_burn_in", (D.POSTED,), (), (A.OPERATIONS,)),
    Rule("register_warranty", (D.POSTED,), (), (A.OPERATIONS, A.BUYER),
         "the day, from the delivery to today; units whose warranty starts with the registration and has not started",
         "their warranty starts on that day"),
    Rule("propose_acceptance", (D.POSTED,), (), (A.OPERATIONS,),
         "each unit passed, or left out with a reason"),
)  # fmt: skip

ASSET_RULES: tuple[Rule, ...] = (
    Rule("install", (S.RECEIVED,), (S.INSTALLED,), (A.OPERATIONS,), "the place is given"),
    Rule("move", (S.INSTALLED, S.BURNED_IN, S.IN_SERVICE, S.DEFECTIVE), (), (A.OPERATIONS,), "the new place is given"),
    Rule("finish_burn_in", (S.INSTALLED,), (S.BURNED_IN, S.DEFECTIVE), (A.SYSTEM,)),
    Rule("accept", (S.BURNED_IN,), (S.IN_SERVICE,), (A.SYSTEM,), "the acceptance is signed",
         "warranty starts by its rule"),
    Rule("report_fault", (S.IN_SERVICE, S.BURNED_IN, S.INSTALLED), (S.DEFECTIVE,), (A.OPERATIONS,),
         "what was seen, and since when", "RMA draft; capacity falls the same day"),
    Rule("send", (S.DEFECTIVE,), (S.AT_VENDOR,), (A.SYSTEM,), "through its RMA"),
    Rule("repair", (S.DEFECTIVE, S.AT_VENDOR), (S.INSTALLED,), (A.SYSTEM,), "through its RMA: burns in again"),
    Rule("replace", (S.DEFECTIVE, S.AT_VENDOR), (S.REPLACED,), (A.SYSTEM,), "through its RMA"),
    Rule("retire", (S.IN_SERVICE, S.DEFECTIVE), (S.RETIRED,), (A.OPERATIONS,), "a reason; no RMA is open"),
    Rule("write_off", (S.DEFECTIVE, S.AT_VENDOR), (S.RETIRED,), (A.SYSTEM,), "through its RMA: credited"),
    Rule("void", (S.RECEIVED,), (S.VOIDED,), (A.SYSTEM,), "its delivery was reversed"),
)  # fmt: skip

BURN_IN_RULES: tuple[Rule, ...] = (
    Rule("decide_item", (B.RUNNING, B.INTERRUPTED), (), (A.OPERATIONS,),
         "only items that a person decides; “not applicable” needs a note"),
    Rule("waive_item", (B.RUNNING, B.INTERRUPTED), (), (A.APPROVER,),
         "not the operator; a reason; never the duration or a failure"),
    Rule("interrupt", (B.RUNNING,), (B.INTERRUPTED,), (A.OPERATIONS,), "a reason"),
    Rule("resume", (B.INTERRUPTED,), (B.RUNNING,), (A.OPERATIONS,), "", "the clock starts again"),
    Rule("complete", (B.RUNNING,), (B.PASSED,), (A.OPERATIONS,),
         "the hours covered by evidence; no blocking item open; nothing inconclusive"),
    Rule("fail", (B.RUNNING, B.INTERRUPTED), (B.FAILED,), (A.OPERATIONS, A.SYSTEM),
         "evidence fails, or a person saw it", "asset defective; RMA draft; the others go on"),
    Rule("abandon", (B.RUNNING, B.INTERRUPTED), (B.ABANDONED,), (A.OPERATIONS,), "a reason", "a new run may start"),
)  # fmt: skip

ACCEPTANCE_RULES: tuple[Rule, ...] = (
    Rule("sign_acceptance", (C.PROPOSED,), (C.ACCEPTED, C.PART_ACCEPTED), (A.APPROVER,),
         "neither proposer nor operator; evidence intact; nothing changed since the draft",
         "assets in service; warranty starts; payment of the accepted quantity opens; certificate"),
    Rule("refuse_acceptance", (C.PROPOSED,), (C.REFUSED,), (A.APPROVER,), "the same people; a reason"),
    Rule("withdraw_acceptance", (C.PROPOSED,), (C.WITHDRAWN,), (A.OPERATIONS,), "a reason"),
)  # fmt: skip

INVOICE_RULES: tuple[Rule, ...] = (
    Rule("match_invoice", (N.CAPTURED, N.EXCEPTION), (N.MATCHED, N.EXCEPTION), (A.FINANCE,),
         "not the receiver; quantity within what was accepted and not yet matched, or milestones within what their "
         "event opened; price and tax within tolerance"),
    Rule("override_invoice", (N.EXCEPTION,), (N.MATCHED,), (A.FINANCE,),
         "not the one who matched; a reason; never a quantity above what was accepted"),
    Rule("approve_invoice", (N.MATCHED,), (N.APPROVED,), (A.FINANCE, A.APPROVER), "not the one who matched"),
    Rule("pay_invoice", (N.APPROVED,), (N.APPROVED, N.PAID), (A.FINANCE,), "at most what is open",
         "spent from the budget; paid once nothing is open or the payment settles the rest"),
    Rule("void_invoice", (N.CAPTURED, N.EXCEPTION, N.MATCHED, N.APPROVED), (N.VOID,), (A.FINANCE,),
         "a reason; nothing of it is paid", "the matched quantity is free again"),
)  # fmt: skip

RMA_RULES: tuple[Rule, ...] = (
    Rule("file_rma", (M.DRAFT, M.DENIED), (M.FILED,), (A.OPERATIONS, A.BUYER),
         "evidence attached; under warranty on the day of the fault, or not yet accepted", "evidence locked"),
    Rule("authorise_rma", (M.FILED,), (M.AUTHORISED,), (A.BUYER,), "the vendor's number"),
    Rule("deny_rma", (M.FILED,), (M.DENIED,), (A.BUYER,), "the vendor's reason"),
    Rule("ship_rma", (M.AUTHORISED,), (M.SHIPPED,), (A.OPERATIONS,), "tracking number"),
    Rule("receive_replacement", (M.AUTHORISED, M.SHIPPED), (M.REPLACEMENT_IN,), (A.OPERATIONS,),
         "a serial number that was never here", "the successor burns in like any new card"),
    Rule("receive_repaired", (M.SHIPPED,), (M.RESOLVED,), (A.OPERATIONS,), "what the vendor found",
         "the card burns in again"),
    Rule("credit_rma", (M.AUTHORISED, M.SHIPPED), (M.RESOLVED,), (A.FINANCE,), "the credit note",
         "the card is retired"),
    Rule("resolve_rma", (M.REPLACEMENT_IN,), (M.RESOLVED,), (A.SYSTEM,), "the successor passed its burn-in"),
    Rule("withdraw_rma", (M.DRAFT, M.DENIED), (M.WITHDRAWN,), (A.OPERATIONS, A.BUYER), "a reason"),
)  # fmt: skip

MACHINES: dict[str, tuple[type[models.TextChoices], tuple[Rule, ...]]] = {
    "vendor": (VendorStatus, VENDOR_RULES),
    "rfq": (RfqStatus, RFQ_RULES),
    "quote": (QuoteStatus, QUOTE_RULES),
    "award": (AwardStatus, AWARD_RULES),
    "order": (OrderStatus, ORDER_RULES),
    "revision": (RevisionStatus, REVISION_RULES),
    "substitution": (SubstitutionStatus, SUBSTITUTION_RULES),
    "delivery": (DeliveryStatus, DELIVERY_RULES),
    "asset": (AssetStatus, ASSET_RULES),
    "burn_in": (BurnInStatus, BURN_IN_RULES),
    "acceptance": (AcceptanceStatus, ACCEPTANCE_RULES),
    "invoice": (InvoiceStatus, INVOICE_RULES),
    "rma": (RmaStatus, RMA_RULES),
}

OPEN_RFQ = frozenset({F.DRAFT, F.OPEN, F.CLOSED, F.OPENED})
GONE_RFQ = frozenset({F.CANCELLED, F.UNAWARDED})
BIDDEN_RFQ = frozenset(
    {F.CLOSED, F.OPENED, F.AWARDED, F.UNAWARDED}
)  # no bid can come in time any more
PRICES_HIDDEN = frozenset(
    {F.DRAFT, F.OPEN, F.CLOSED}
)  # of a sealed RFQ; a cancelled one may stay unopened too
BINDING_ORDER = frozenset({P.ISSUED, P.ACKNOWLEDGED, P.CLOSED})
OPEN_RMA = frozenset({M.DRAFT, M.FILED, M.AUTHORISED, M.DENIED, M.SHIPPED, M.REPLACEMENT_IN})
GONE_ASSET = frozenset({S.REPLACED, S.RETIRED, S.VOIDED})
COUNTED_INVOICE = frozenset({N.MATCHED, N.APPROVED, N.PAID})
