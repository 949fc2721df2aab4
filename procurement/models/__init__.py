"""Rows of this app, by noun."""

from procurement.models.acceptance import Acceptance, AcceptanceCertificate, AcceptanceUnit
from procurement.models.assets import Asset, AssetWarranty
from procurement.models.awards import Award, AwardDocument, AwardLine
from procurement.models.burn_in import BurnInRun, ChecklistItem, ChecklistTemplate, RunItem
from procurement.models.clauses import Clause, RfqClause, RfqDocument
from procurement.models.conflicts import ConflictStatement
from procurement.models.deliveries import AnnouncedSerial, Delivery, ReceiptLine
from procurement.models.evidence import EvidenceFile, UnitVerdict
from procurement.models.invoices import Invoice, InvoiceLine
from procurement.models.live import LiveCard, LiveChunk, LiveFeed
from procurement.models.negotiation import Concession
from procurement.models.orders import OrderLine, OrderRevision, PurchaseOrder
from procurement.models.payments import InvoicePart, Milestone, Payment, QuotePayment
from procurement.models.performance import Measurement, PerformancePromise
from procurement.models.policy import PurchasingPolicy
from procurement.models.quote_imports import QuoteImport
from procurement.models.quotes import (
    PriceBreak,
    Quote,
    QuoteAttachment,
    QuoteLine,
    WarrantyTerms,
)
from procurement.models.requirements import QuoteAnswer, RfqRequirement
from procurement.models.rfqs import Rfq, RfqCriterion, RfqInvitation, RfqLine, RfqOpening
from procurement.models.rmas import Rma
from procurement.models.substitutions import DrawDown, Substitution
from procurement.models.vendor_access import VendorToken
from procurement.models.vendors import Vendor, VendorContact, VendorDocument

__all__ = [
    "Acceptance",
    "AcceptanceCertificate",
    "AcceptanceUnit",
    "AnnouncedSerial",
    "Asset",
    "AssetWarranty",
    "Award",
    "AwardDocument",
    "AwardLine",
    "BurnInRun",
    "ChecklistItem",
    "ChecklistTemplate",
    "Clause",
    "Concession",
    "ConflictStatement",
    "Delivery",
    "DrawDown",
    "EvidenceFile",
    "Invoice",
    "InvoiceLine",
    "InvoicePart",
    "LiveCard",
    "LiveChunk",
    "LiveFeed",
    "Measurement",
    "Milestone",
    "OrderLine",
    "OrderRevision",
    "Payment",
    "PerformancePromise",
    "PriceBreak",
    "PurchaseOrder",
    "PurchasingPolicy",
    "Quote",
    "QuoteAnswer",
    "QuoteAttachment",
    "QuoteImport",
    "QuoteLine",
    "QuotePayment",
    "ReceiptLine",
    "Rfq",
    "RfqClause",
    "RfqCriterion",
    "RfqDocument",
    "RfqInvitation",
    "RfqLine",
    "RfqOpening",
    "RfqRequirement",
    "Rma",
    "RunItem",
    "Substitution",
    "UnitVerdict",
    "Vendor",
    "VendorContact",
    "VendorDocument",
    "VendorToken",
    "WarrantyTerms",
]
