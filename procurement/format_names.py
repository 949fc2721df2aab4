"""Formats of evidence as people call them. Keys are those of `procurement.evidence.readers.READERS`."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

NAMES = {
    "amd_rvs": "AMD RVS", "amd_smi_csv": "amd-smi (CSV)", "amd_smi_json": "amd-smi (JSON)", "amd_smi_text": "amd-smi",
    "bmc_log_redfish": _("event log of the BMC (Redfish)"), "bmc_sel_text": _("event log of the BMC (SEL)"),
    "cuda_bandwidthtest": "CUDA bandwidthTest", "dcgmi_diag_json": "dcgmi diag (JSON)", "dcgmi_diag_text": "dcgmi diag",
    "gpu_burn": "gpu-burn", "hpl": "HPL", "kernel_log_xid": _("kernel log"),
    "mlperf_loadgen_summary": "MLPerf (LoadGen)", "mlperf_training_log": "MLPerf (training)",
    "nccl_tests": "nccl-tests / rccl-tests", "npu_smi_info_text": "npu-smi info", "npu_smi_query_text": "npu-smi",
    "nvbandwidth_json": "nvbandwidth (JSON)", "nvbandwidth_text": "nvbandwidth", "nvidia_smi_q_text": "nvidia-smi -q",
    "nvidia_smi_q_xml": "nvidia-smi -q -x", "nvidia_smi_query_csv": "nvidia-smi --query-gpu (CSV)",
    "prometheus_api_json": "Prometheus API (JSON)", "prometheus_text": "Prometheus exporter",
    "rocm_smi_csv": "rocm-smi (CSV)", "rocm_smi_json": "rocm-smi (JSON)", "rocm_smi_text": "rocm-smi",
    "slurm_sacct": "Slurm sacct", "slurm_sreport": "Slurm sreport", "photo": _("photo"), "document": "PDF",
}  # fmt: skip


def format_name(key: str) -> str:
    """`nvidia_smi_q_xml` as `nvidia-smi -q -x`; a key that has no name stays."""
    return str(NAMES.get(key, key))
