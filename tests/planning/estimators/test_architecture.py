import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from planning.estimators.architecture import (
    active_parameters,
    architecture_from_count,
    attention_layers,
    count_parameters,
    flops_per_token,
    kv_elements,
    kv_elements_per_token,
    moe_layers,
    total_parameters,
    validate,
)
from planning.estimators.huggingface import architecture_from_config
from planning.estimators.types import Architecture, MixtureOfExperts

LLAMA_3_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 129280,
    "max_position_embeddings": 163840,
}
QWEN3_0_6B = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "sliding_window": None,
    "use_sliding_window": False,
}
QWEN3_235B = {
    "model_type": "qwen3_moe",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_hidden_layers": 94,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "vocab_size": 151936,
}
GPT_OSS_120B = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_hidden_layers": 36,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "vocab_size": 201088,
}
LLAMA_4_MAVERICK = {
    "model_type": "llama4",
    "text_config": {
        "model_type": "llama4_text",
        "hidden_size": 5120,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_local_experts": 128,
        "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 2,
        "attention_chunk_size": 8192,
        "vocab_size": 202048,
    },
    "vision_config": {"hidden_size": 1408, "num_hidden_layers": 34},
}
GEMMA_3_27B = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "sliding_window": 1024,
        "vocab_size": 262208,
    },
}
JAMBA_MINI = {
    "model_type": "jamba",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "attn_layer_period": 8,
    "attn_layer_offset": 4,
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_dt_rank": 256,
    "vocab_size": 65536,
}
QWEN3_NEXT_80B = {
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
NEMOTRON_H_8B = {
    "model_type": "nemotron_h",
    "hidden_size": 4096,
    "intermediate_size": 21504,
    "num_hidden_layers": 52,
    "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "n_groups": 8,
    "ssm_state_size": 128,
    "conv_kernel": 4,
    "vocab_size": 131072,
    "tie_word_embeddings": False,
}
GPT_2 = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}
FALCON_7B = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_hidden_layers": 32,
    "num_attention_heads": 71,
    "multi_query": True,
    "vocab_size": 65024,
}
BERT_LARGE = {
    "model_type": "bert",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "max_position_embeddings": 512,
    "vocab_size": 30522,
}
MIXTRAL_8X7B = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "sliding_window": None,
    "vocab_size": 32000,
}

# Totals and active counts as the model cards print them (active None: dense, or printed without the embeddings).
PUBLISHED = [
    ("Llama-3.1-8B", LLAMA_3_8B, 8.030e9, None),
    ("DeepSeek-V3", DEEPSEEK_V3, 671e9, 37e9),
    ("Qwen3-0.6B", QWEN3_0_6B, 0.596e9, None),
    ("Qwen3-235B-A22B", QWEN3_235B, 235.09e9, 22e9),
    ("gpt-oss-120b", GPT_OSS_120B, 116.8e9, None),
    ("Llama-4-Maverick", LLAMA_4_MAVERICK, 400e9, 17e9),
    ("Gemma-3-27B text", GEMMA_3_27B, 27.0e9, None),
    ("Jamba-mini", JAMBA_MINI, 51.6e9, 12.1e9),
    ("Qwen3-Next-80B-A3B", QWEN3_NEXT_80B, 80e9, None),
    ("Nemotron-H-8B", NEMOTRON_H_8B, 8.1e9, None),
    ("GPT-2", GPT_2, 124.4e6, None),
    ("Falcon-7B", FALCON_7B, 6.92e9, None),
    ("BERT-large", BERT_LARGE, 335.1e6, None),
    ("Mixtral-8x7B", MIXTRAL_8X7B, 46.7e9, 12.9e9),
]


@pytest.mark.parametrize(
    ("name", "config", "total", "active"), PUBLISHED, ids=[p[0] for p in PUBLISHED]
)
def test_counts_from_the_config_agree_with_the_model_card(name, config, total, active):
    counted = count_parameters(architecture_from_config(json.loads(json.dumps(config))))

    assert counted.total == pytest.approx(total, rel=0.02)
    if active is not None:
        assert counted.active == pytest.approx(active, rel=0.02)


def test_grouped_query_cache_counts_key_value_heads_only():
    shape = architecture_from_config(LLAMA_3_8B)
    assert kv_elements_per_token(shape) == 2 * 32 * 8 * 128


def test_latent_attention_keeps_one_latent_a_layer():
    shape = architecture_from_config(DEEPSEEK_V3)
    assert kv_elements_per_token(shape) == 61 * (512 + 64)
    assert moe_layers(shape) == 58


def test_explicit_head_dim_is_not_hidden_over_heads():
    assert architecture_from_config(QWEN3_0_6B).head_dim == 128


def test_windowed_layers_stop_growing():
    shape = architecture_from_config(GPT_OSS_120B)
    at_window, far = kv_elements(shape, 128), kv_elements(shape, 131_072)
    full = 18 * 2 * 8 * 64
    assert far - at_window == pytest.approx(full * (131_072 - 128))


def test_gemma_mixes_five_local_layers_with_one_global():
    shape = architecture_from_config(GEMMA_3_27B)
    assert (shape.sliding_window, shape.sliding_layers) == (1024, 52)


def test_hybrid_layers_keep_a_constant_state():
    shape = architecture_from_config(QWEN3_NEXT_80B)
    assert attention_layers(shape) == 12
    growth = kv_elements(shape, 2000) - kv_elements(shape, 1000)
    assert growth == 1000 * 12 * 2 * 2 * 256
    assert kv_elements(shape, 0) > 0


def test_interleaved_experts_of_a_nested_text_config():
    shape = architecture_from_config(LLAMA_4_MAVERICK)
    assert moe_layers(shape) == 24
    assert (shape.sliding_window, shape.sliding_layers) == (8192, 36)


def test_multi_query_of_falcon():
    assert architecture_from_config(FALCON_7B).kv_heads == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"hidden_size": -4096}, "hidden_size"),
        ({"num_attention_heads": 33}, "num_attention_heads"),
        ({"num_key_value_heads": 5}, "kv_heads"),
        ({"num_key_value_heads": 0}, "kv_heads"),
        ({"vocab_size": "many"}, "vocab_size"),
        ({"num_hidden_layers": 32.5}, "num_hidden_layers"),
        ({"intermediate_size": 0}, "ffn"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "moe.top_k"),
    ],
)
def test_impossible_shapes_are_refused_by_field(change, field):
    with pytest.raises(InputError) as raised:
        architecture_from_config({**LLAMA_3_8B, **change})
    assert raised.value.field == field


def test_missing_layers_are_named():
    with pytest.raises(InputError, match="num_hidden_layers"):
        architecture_from_config({"hidden_size": 4096, "num_attention_heads": 32})


def test_a_list_is_no_config():
    with pytest.raises(InputError):
        architecture_from_config([1, 2])


def test_validation_names_value_and_limit():
    shape = Architecture("x", 2, 64, 4, 4, 16, 128, 100, moe=MixtureOfExperts(4, 5, 32))
    with pytest.raises(InputError) as raised:
        validate(shape)
    assert (raised.value.field, raised.value.value, raised.value.limit) == ("moe.top_k", 5, 4)


@given(st.floats(1e7, 2e12))
def test_a_bare_count_gives_a_shape_of_that_size(params):
    shape = architecture_from_count(params)
    assert total_parameters(shape) == params
    assert count_parameters(shape).total == pytest.approx(params, rel=0.02 if params > 3e8 else 0.3)
    assert shape.assumed


def test_a_bare_seven_billion_looks_like_one():
    shape = architecture_from_count(7e9)
    assert 24 <= shape.layers <= 40
    assert 3072 <= shape.hidden <= 5120
    assert shape.kv_heads == 8


def test_a_bare_sparse_count_keeps_both_counts():
    shape = architecture_from_count(235e9, active=22e9)
    counted = count_parameters(shape)
    assert counted.total == pytest.approx(235e9, rel=0.05)
    assert counted.active == pytest.approx(22e9, rel=0.1)
    assert active_parameters(shape) == 22e9


@pytest.mark.parametrize("bad", [0, -7e9, float("nan"), 1e15])
def test_a_bare_count_out_of_range_is_refused(bad):
    with pytest.raises(InputError, match="params"):
        architecture_from_count(bad)


def test_active_above_total_is_refused():
    with pytest.raises(InputError) as raised:
        architecture_from_count(7e9, active=8e9)
    assert raised.value.field == "active"


def test_training_flops_are_six_per_parameter_and_token():
    shape = architecture_from_config(LLAMA_3_8B)
    looked_up = 128256 * 4096  # the input table is read, not multiplied
    assert flops_per_token(shape, backward=True) == pytest.approx(
        6 * (8.03e9 - looked_up), rel=0.001
    )


@given(st.integers(1, 200_000), st.integers(1, 200_000))
def test_longer_context_never_shrinks_the_cache(a, b):
    shape = architecture_from_config(GEMMA_3_27B)
    low, high = sorted((a, b))
    assert kv_elements(shape, low) <= kv_elements(shape, high)
