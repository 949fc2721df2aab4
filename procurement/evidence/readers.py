"""The readers by format. One interface: read(document, context) -> Report."""

from __future__ import annotations

from collections.abc import Callable

from procurement.evidence import dcgm_json, dcgm_text, gpu_burn, kernel_log, nccl_tests
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report

Reader = Callable[[Document, EvidenceContext], Report]

_MODULES = (dcgm_json, dcgm_text, gpu_burn, kernel_log, nccl_tests)
READERS: dict[str, Reader] = {name: module.read for module in _MODULES for name in module.FORMATS}

# These walk the lines themselves and separate hosts as they go.
STREAMING = frozenset({"gpu_burn", "kernel_log_xid", "nvidia_smi_query_csv"})
