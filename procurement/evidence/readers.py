"""The readers by format. One interface: read(document, context) -> Report."""

from __future__ import annotations

from collections.abc import Callable

from procurement.evidence import (
    amd_smi,
    bandwidth_test,
    bmc_log,
    dcgm_json,
    dcgm_text,
    gpu_burn,
    hpl,
    kernel_log,
    mlperf,
    nccl_tests,
    npu_query,
    npu_smi,
    nvbandwidth,
    nvidia_smi_csv,
    nvidia_smi_query,
    nvidia_smi_xml,
    prometheus_api,
    prometheus_text,
    rocm_smi,
    rvs,
    slurm,
)
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report

Reader = Callable[[Document, EvidenceContext], Report]

_MODULES = (
    amd_smi,
    bandwidth_test,
    bmc_log,
    dcgm_json,
    dcgm_text,
    gpu_burn,
    hpl,
    kernel_log,
    mlperf,
    nccl_tests,
    npu_query,
    npu_smi,
    nvbandwidth,
    nvidia_smi_csv,
    nvidia_smi_query,
    nvidia_smi_xml,
    prometheus_api,
    prometheus_text,
    rocm_smi,
    rvs,
    slurm,
)
READERS: dict[str, Reader] = {name: module.read for module in _MODULES for name in module.FORMATS}

# These walk the lines themselves and separate hosts as they go.
STREAMING = frozenset({"gpu_burn", "kernel_log_xid", "nvidia_smi_query_csv"})
