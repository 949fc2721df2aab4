"""Accelerators, shapes and published figures that the training tests share."""

from planning.estimators.types import Accelerator, Architecture

A100 = Accelerator(
    slug="nvidia-a100-sxm4-80gb",
    name="NVIDIA A100 SXM 80GB",
    generation="ampere",
    hbm_bytes=80e9,
    hbm_bandwidth=2.039e12,
    peak_flops={"fp32": 19.5e12, "tf32": 156e12, "fp16": 312e12, "bf16": 312e12},
    tdp=400.0,
    link_bandwidth=600e9,
    link_kind="nvlink",
    form_factor="SXM4",
    sparsity_factor=2.0,
)
H100 = Accelerator(
    slug="nvidia-h100-sxm5-80gb",
    name="NVIDIA H100 SXM 80GB",
    generation="hopper",
    hbm_bytes=80e9,
    hbm_bandwidth=3.35e12,
    peak_flops={"fp32": 67e12, "fp16": 989.4e12, "bf16": 989.4e12, "fp8": 1978.9e12},
    tdp=700.0,
    link_bandwidth=900e9,
    link_kind="nvlink",
    pcie_bandwidth=64e9,
    form_factor="SXM5",
    sparsity_factor=2.0,
)
RTX4090 = Accelerator(
    slug="nvidia-geforce-rtx-4090",
    name="NVIDIA GeForce RTX 4090",
    generation="ada lovelace",
    hbm_bytes=24e9,
    hbm_bandwidth=1.008e12,
    peak_flops={"fp32": 82.6e12, "fp16": 165.2e12, "bf16": 165.2e12},
    tdp=450.0,
    form_factor="PCIe",
)
LLAMA_3_8B = Architecture(
    name="Llama-3-8B",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    ffn=14336,
    vocab=128256,
    max_context=8192,
    params_total=8030261248,
)
LLAMA_3_70B = Architecture(
    "Llama-3-70B", 80, 8192, 64, 8, 128, 28672, 128256, params_total=70553706496.0
)
LLAMA_2_7B = Architecture(
    name="Llama-2-7B",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=32,
    head_dim=128,
    ffn=11008,
    vocab=32000,
    max_context=4096,
    params_total=6738415616,
)
MISTRAL_7B = Architecture(
    name="Mistral-7B",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    ffn=14336,
    vocab=32000,
    params_total=7241732096,
)
MPT_30B = Architecture(
    name="MPT-30B",
    layers=48,
    hidden=7168,
    heads=56,
    kv_heads=56,
    head_dim=128,
    ffn=28672,
    vocab=50368,
    gated=False,
    tied_embeddings=True,
    params_total=29975214080,
)
GPT3_175B = Architecture(
    name="GPT-3-175B",
    layers=96,
    hidden=12288,
    heads=96,
    kv_heads=96,
    head_dim=128,
    ffn=49152,
    vocab=51200,
    gated=False,
    tied_embeddings=True,
    params_total=174.6e9,
)
