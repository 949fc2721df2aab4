"""The catalogue's tables. Import models from here; everything else from its own module."""

from catalog.models.accelerators import Accelerator, AcceleratorSpec
from catalog.models.architectures import ArchitectureSpec, ModelArchitecture
from catalog.models.imports import PriceImport
from catalog.models.leases import LeaseOffer
from catalog.models.offers import CloudOffer, OfferPrice
from catalog.models.platforms import PlatformSpec, ServerPlatform
from catalog.models.prices import PriceRecord
from catalog.models.provenance import Confidence, Origin, Precision
from catalog.models.tco import TcoDefault, TcoDefaultValue

__all__ = [
    "Accelerator",
    "AcceleratorSpec",
    "ArchitectureSpec",
    "CloudOffer",
    "Confidence",
    "LeaseOffer",
    "ModelArchitecture",
    "OfferPrice",
    "Origin",
    "PlatformSpec",
    "Precision",
    "PriceImport",
    "PriceRecord",
    "ServerPlatform",
    "TcoDefault",
    "TcoDefaultValue",
]
