"""What the cost defaults are called. Keys are for files and programs; people read these."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

TCO_LABELS: dict[str, Promise | str] = {
    "pue.colocation": _("PUE, colocation or own data centre"),
    "pue.hyperscale": _("PUE, hyperscale"),
    "pue.china": _("PUE, new site in China"),
    "tariff.cny_per_kwh": _("Electricity, China"),
    "tariff.usd_per_kwh": _("Electricity, United States"),
    "colocation.usd_per_kw_month": _("Colocation, United States"),
    "colocation.cny_per_kw_month": _("Colocation, China"),
    "rack.cny_per_year": _("Rack, China"),
    "staff.cny_per_fte_year": _("Operations engineer, China"),
    "staff.usd_per_fte_year": _("Operations engineer, United States"),
    "staff.loading": _("Cost of staff over pay"),
    "staff.minimum_fte": _("Least staff of a cluster"),
    "staff.accelerators_per_fte": _("Accelerators per engineer"),
    "interruption.per_accelerator_year": _("Interruptions by the accelerator"),
    "replacement.per_accelerator_year": _("Accelerators replaced"),
    "repair.per_accelerator_year": _("Accelerators repaired"),
    "repair.days": _("Repair turnaround"),
    "spares.ratio": _("Spares"),
    "effective_training_time": _("Effective training time"),
    "depreciation.years": _("Depreciation"),
    "network.share": _("Network, share of cluster capex"),
    "storage.share": _("Storage, share of cluster capex"),
    "warranty.rate": _("Warranty and support"),
    "software.usd_per_accelerator_year": _("Software licence"),
    "insurance.rate": _("Insurance"),
    "lead_weeks.in_stock": _("Lead time, in stock"),
    "lead_weeks.new_generation": _("Lead time, new generation"),
    "acceptance.days": _("Acceptance"),
    "vat.china": _("VAT, China"),
    "vat.china_services": _("VAT on services, China"),
    "import_duty.china": _("Import duty, China"),
    "discount_rate": _("Discount rate"),
    "utilisation.owned": _("Utilisation, own cluster"),
    "power.idle_share": _("Idle power over highest power"),
    "power.load_share": _("Power under load over highest power"),
    "pay_factor.reserved_1y": _("Reserved 1 year, share of on demand"),
    "pay_factor.reserved_3y": _("Reserved 3 years, share of on demand"),
    "pay_factor.spot": _("Spot, share of on demand"),
    "spot.reclaim_per_month": _("Spot instances reclaimed"),
    "spot.restart_minutes": _("Restart after a reclaim"),
    "egress.usd_per_gb": _("Internet egress"),
    "egress.cny_per_gb": _("Internet egress, China"),
    "inter_region.usd_per_gb": _("Traffic between regions"),
    "storage_hot.usd_per_gb_month": _("Object storage, hot"),
    "storage_cool.usd_per_gb_month": _("Object storage, cool"),
    "storage_archive.usd_per_gb_month": _("Object storage, archive"),
    "storage_hot.cny_per_gb_month": _("Object storage, hot, China"),
    "residual.h100": _("Residual value H100, by year"),
    "residual.a100": _("Residual value A100, by year"),
    "storage_hot.aws_usd_per_gb_month": _("AWS: object storage, hot"),
    "storage_hot.azure_usd_per_gb_month": _("Azure: object storage, hot"),
    "storage_hot.gcp_usd_per_gb_month": _("Google Cloud: object storage, hot"),
    "storage_hot.oci_usd_per_gb_month": _("OCI: object storage, hot"),
    "inter_region.aws_usd_per_gb": _("AWS: traffic between regions"),
    "inter_region.azure_usd_per_gb": _("Azure: traffic between regions"),
    "inter_region.gcp_usd_per_gb": _("Google Cloud: traffic between regions"),
    "inter_region.oci_usd_per_gb": _("OCI: traffic between regions"),
    "egress_free.aws_gb": _("AWS: egress without charge in a month"),
    "egress_free.azure_gb": _("Azure: egress without charge in a month"),
    "egress_free.gcp_gb": _("Google Cloud: egress without charge in a month"),
    "egress_free.oci_gb": _("OCI: egress without charge in a month"),
    "egress.aws_usd_by_tier": _("AWS: internet egress, by tier"),
    "egress.azure_usd_by_tier": _("Azure: internet egress, by tier"),
    "egress.gcp_usd_by_tier": _("Google Cloud: internet egress, by tier"),
    "egress_tiers.aws_gb": _("AWS: sizes of the tiers of internet egress"),
    "egress_tiers.azure_gb": _("Azure: sizes of the tiers of internet egress"),
    "egress_tiers.gcp_gb": _("Google Cloud: sizes of the tiers of internet egress"),
    "egress.oci_usd_by_tier": _("OCI: internet egress, by tier"),
}


# Sources that are descriptions, not names: of exchange rates, street prices and cost defaults.
SOURCES: dict[str, Promise | str] = {
    "ECB euro reference rates, 31 December 2024 (recalled), crossed over the euro": _(
        "ECB euro reference rates, 31 December 2024 (recalled), crossed over the euro"
    ),
    "ECB euro reference rates, 31 December 2024 (recalled)": _(
        "ECB euro reference rates, 31 December 2024 (recalled)"
    ),
    "Dollar peg of the dirham (recalled)": _("Dollar peg of the dirham (recalled)"),
    "Year-end 2024 market rate (recalled)": _("Year-end 2024 market rate (recalled)"),
    "Prices a buyer in China gave, about 2025, per card": _(
        "Prices a buyer in China gave, about 2025, per card"
    ),
    "model card": _("model card"),
    "vendor briefs": _("vendor briefs"),
    "Chinese channel reports": _("Chinese channel reports"),
    "Chinese channel prices by kW": _("Chinese channel prices by kW"),
    "Chinese clouds": _("Chinese clouds"),
}


def source_words(source: str) -> str:
    """A source in the reader's language where it is a description; names of documents and sites stay as they are."""
    return str(SOURCES.get(source, source))


def tco_label(key: str) -> str:
    """The name of a cost default in the reader's language; the key itself when it has none."""
    return str(TCO_LABELS.get(key, key))
