"""Which tool wrote a file, by what is in it. Names are never trusted: people rename, paste and concatenate."""

from __future__ import annotations

import re

_MAGIC = {
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "rar",
    b"%PDF": "pdf",
    b"\x89PNG": "png",
    b"\xff\xd8\xff": "jpeg",
    b"GIF8": "gif",
    b"\x7fELF": "elf",
    b"MZ": "exe",
    b"SQLite": "sqlite",
    b"\xd0\xcf\x11\xe0": "ole",
}

# In order: where two could match, the more telling sign comes first.
_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.MULTILINE))
    for name, pattern in (
        ("nvidia_smi_q_xml", r"<!DOCTYPE nvidia_smi_log|<nvidia_smi_log\b"),
        ("dcgmi_diag_json", r'"DCGM (?:GPU |Multi-Node )?Diagnostic"\s*:|"runtime_error"\s*:'),
        ("nvbandwidth_json", r'"nvbandwidth"\s*:'),
        ("prometheus_api_json", r'"resultType"\s*:|"errorType"\s*:\s*"'),
        ("rocm_smi_json", r'"card\d{1,3}"\s*:\s*\{'),
        (
            "amd_smi_json",
            r'"gpu_data"\s*:|"gpu"\s*:\s*\d+\s*,[^{}]{0,200}"(?:asic|bus|usage|power|ecc|board|ras|vbios|ifwi|temperature|clock|mem_usage|limit|driver|vram|numa|cache)"\s*:',
        ),
        (
            "dcgmi_diag_text",
            r"^\s*[|+]-{3,}\s+(?:Metadata|Deployment|Integration|Hardware|Stress)\s+-{2,}|^\| Diagnostic\s+\| Result",
        ),
        (
            "bmc_log_redfish",
            r'"@odata\.type"\s*:\s*"#LogEntry(?:Collection)?\.|"EntryType"\s*:\s*"(?:SEL|Event|Oem)"',
        ),
        (
            "bmc_sel_text",
            r"^\s*[0-9a-fA-F]{1,8}\s*[|,]\s*(?:\d\d/\d\d/\d{2,4}|\d{4}-\d\d-\d\d|[A-Z][a-z]{2}-\d\d-\d{4})\s*[|,]"
            r"\s*\d\d:\d\d:\d\d[^|,]{0,14}[|,]|^\s*[0-9a-fA-F]{1,8}\s*[|,]\s*Pre-?Init\b|^SEL has no entries",
        ),
        ("npu_smi_info_text", r"^\|\s*npu-smi\s|^\|\s*NPU\s+(?:Name|Chip)\b"),
        (
            "npu_smi_query_text",
            r"^\s*NPU ID\s+: \d|^\s*(?:DDR|HBM) (?:Single|Double) Bit Error Count\s+: ",
        ),
        (
            "gpu_burn",
            r"^Burning for \d+ seconds|%\s+proc'd:|^Tested \d+ GPUs:|^Couldn't init a GPU test|^No clients are alive!",
        ),
        (
            "nvbandwidth_text",
            r"^nvbandwidth Version:|^Running (?:host|device|all)_\w+\.|^SUM (?:host|device|all)_\w+",
        ),
        (
            "cuda_bandwidthtest",
            r"\[CUDA Bandwidth Test\]|^ ?(?:Host to Device|Device to Host|Device to Device) Bandwidth, \d+ Device|"
            r"^bandwidthTest-(?:H2D|D2H|D2D)",
        ),
        (
            "nccl_tests",
            r"^#? ?nThread \d+ nGpus \d+|^# (?:nccl|rccl)-tests version|^# Collective test|"
            r"^#\s+Rank\s+\d+ .*\bdevice\b|^# Avg bus bandwidth|Test (?:NCCL|CUDA) failure",
        ),
        (
            "hpl",
            r"^HPLinpack |^HPL-NVIDIA|^T/V\s+N\s+NB\s+P\s+Q|^W[CR]\S+\s+\d+\s+\d+\s+\d+\s+\d+\s+[\d.]+|HPL_pdgesv",
        ),
        ("mlperf_loadgen_summary", r"^MLPerf Results Summary"),
        ("mlperf_training_log", r"^:::MLLOGv?\d?"),
        ("amd_rvs", r"^\[RESULT\s*\]\s*\[\s*[\d.]+\s*\]"),
        (
            "nvidia_smi_q_text",
            r"^=+NVSMI LOG=+|^GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s*$|^Attached GPUs\s+:",
        ),
        ("prometheus_text", r"^# (?:HELP|TYPE) [A-Za-z_:][\w:]*|^DCGM_FI_\w+\{"),
        (
            "slurm_sacct",
            r"^JobID(?:Raw)?[|,].*\bState\b|^.*\|JobID(?:Raw)?\|.*\bState\b|^\s*JobID(?:Raw)?\s.*\bState\b|"
            r"^\d{1,12}(?:[._+][\w\[\],-]{1,60})?\|.*\|"
            r"(?:COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|RUNNING|PENDING)[ |]",
        ),
        (
            "slurm_sreport",
            r"^Cluster Utilization \d{4}-|^Usage reported in |^\s*Cluster\s+TRES Name\s|^Cluster\|TRES Name\|",
        ),
        ("rocm_smi_text", r"^GPU\[\d+\]\s*:|ROCm System Management Interface"),
        ("amd_smi_text", r"^GPU: \d+\s*$"),
        (
            "amd_smi_csv",
            r"^gpu,(?=.*\b(?:gfx_activity|market_name|asic_serial|product_serial|total_uncorrectable_count|socket_power|"
            r"hotspot|bdf)\b)",
        ),
        ("rocm_smi_csv", r"^device,.*\((?:C|W|%)\)|^card0,"),
    )
)
_KERNEL_JOURNAL = re.compile(r'"MESSAGE"\s*:')
_JOURNAL_FIELD = re.compile(
    r'"(?:__REALTIME_TIMESTAMP|_TRANSPORT|SYSLOG_IDENTIFIER|_HOSTNAME)"\s*:'
)
_KERNEL = re.compile(
    r"NVRM: |\bS?Xid \(|nvidia-nvswitch\d|^\[\s*\d+\.\d{6}\] |^\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}\] |"
    r"^(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.]+\S*) \S+ kernel: ",
    re.MULTILINE,
)
_KERNEL_SURE = re.compile(r"NVRM: Xid \(|nvidia-nvswitch\d+: SXid \(")
_QUERY_NAMES = re.compile(
    r"(?:^|[,;\t]) *\"?(timestamp|index|name|gpu_name|uuid|gpu_uuid|serial|gpu_serial|gpu_bus_id|"
    r"pci\.\w+|pstate|temperature\.\w+|"
    r"utilization\.\w+|memory\.\w+|power\.\w[\w.]*|clocks[\w.]*|ecc\.[\w.]+|remapped_rows\.\w+|"
    r"retired_pages\.\w+|"
    r"pcie\.[\w.]+|driver_version|vbios_version|fan\.speed|inforom\.\w+|gom\.\w+|compute_cap|persistence_mode|mig\.\w[\w.]*)"
    r"(?: \[[^\]]{1,8}\])?(?=\"? *(?:[,;\t]|$))",
)
_HEADLESS_ROW = re.compile(
    r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3} ?[,;\t]|"
    r"(?:^|[,;\t]) ?GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{8,32} ?(?:[,;\t]|$)"
)


def archive_kind(magic: bytes) -> str | None:
    """The kind of a file that is not text at all (an archive, a picture, a program), or None."""
    return next((kind for start, kind in _MAGIC.items() if magic.startswith(start)), None)


def detect(windows: tuple[str, ...]) -> list[str]:
    """Formats seen in windows of a file, the one that reads it first. Empty when none is known."""
    found: list[str] = []

    def add(name: str, seen: object) -> None:
        if seen and name not in found:
            found.append(name)

    for window in windows:
        for name, sign in _SIGNS:
            add(name, sign.search(window))
        add("nvidia_smi_query_csv", _has_query_header(window))
        add("kernel_log_xid", _KERNEL_SURE.search(window))
        if not found:
            journal = _KERNEL_JOURNAL.search(window) and _JOURNAL_FIELD.search(window)
            add("kernel_log_xid", _KERNEL.search(window) or journal)
        if found != ["kernel_log_xid"]:
            add("nvidia_smi_query_csv", _has_query_rows(window))
    return found


def _has_query_header(window: str) -> bool:
    return any(len(_QUERY_NAMES.findall(line[:4000])) >= 2 for line in window.splitlines()[:200])


def _has_query_rows(window: str) -> bool:
    return any(_HEADLESS_ROW.search(line[:4000]) for line in window.splitlines()[:200])
