"""Configs as they are published, against what their model cards say.

``tests/data/configs/published.json`` holds the fields of each config.json that decide the shape, and beside them the
parameters that the model card prints (billions as written there, exact where the weights' index gives them). The cache
per token follows from the layers, heads and latents that the card or the paper describes.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import InputError
from planning.estimators.architecture import (
    COUNT_TOLERANCE,
    attention_groups,
    attention_layers,
    count_parameters,
    kv_elements,
    kv_elements_per_token,
    matmul_parameters,
    moe_layers,
    total_parameters,
    validate,
)
from planning.estimators.config_precision import stated_weights
from planning.estimators.huggingface import architecture_from_config
from planning.estimators.training_candidates import _architecture_columns, adapter_parameters
from planning.estimators.types import (
    Architecture,
    LatentAttention,
    MixtureOfExperts,
    StateSpace,
)
from planning.study.request import parse_request

ROWS = json.loads(
    (Path(__file__).parents[2] / "data/configs/published.json").read_text(encoding="utf-8")
)
BY_NAME = {row["model"].split("/")[1].split(" ")[0]: row["config"] for row in ROWS}
LLAMA = BY_NAME["Llama-3.1-405B"]


@pytest.mark.parametrize("row", ROWS, ids=[row["model"] for row in ROWS])
def test_a_published_config_counts_what_its_model_card_says(row):
    shape = architecture_from_config(row["config"])
    count = count_parameters(shape)

    assert count.total == pytest.approx(row["total"], rel=COUNT_TOLERANCE)
    if "active" in row:  # cards count the tables in or leave them out
        near = (count.active, count.active - count.embedding - count.head)
        assert min(abs(one / row["active"] - 1) for one in near) < 0.06
    if "kv_elements_per_token" in row:
        assert kv_elements_per_token(shape) == row["kv_elements_per_token"]
    assert matmul_parameters(shape) <= count.active


def test_global_layers_of_their_own_shape_keep_their_own_cache():
    shape = architecture_from_config(BY_NAME["gemma-4-31B-it"])
    full, windowed = attention_groups(shape)

    assert (full.layers, full.shape.kv_heads, full.shape.head_dim) == (10, 4, 512)
    assert (windowed.layers, windowed.shape.kv_heads, windowed.shape.head_dim) == (50, 16, 256)
    grown = kv_elements(shape, 65_536) - kv_elements(shape, 32_768)
    assert grown == pytest.approx(10 * 2 * 4 * 512 * 32_768)


def test_a_flag_that_says_no_window_wins_over_the_window():
    assert architecture_from_config(BY_NAME["Qwen2.5-7B"]).sliding_window is None


def test_qwen_has_no_window_when_the_flag_is_left_out():
    config = {k: v for k, v in BY_NAME["Qwen2.5-7B"].items() if k != "use_sliding_window"}
    assert architecture_from_config(config).sliding_window is None


def test_layers_that_draft_tokens_are_listed_and_left_out():
    # Step 3.5 Flash as published lists 48 layers: 45, and num_nextn_predict_layers 3 that draft
    config = BY_NAME["Step-3.5-Flash"]
    listed = [*config["layer_types"], *["sliding_attention"] * 3]
    shape = architecture_from_config(
        {**config, "layer_types": listed, "num_nextn_predict_layers": 3}
    )
    assert (shape.layers, shape.sliding_layers) == (45, 33)


def test_layers_that_see_an_image_keep_no_token():
    # Llama 3.2 11B Vision: 8 of 40 layers are cross-attention, 32 keep 2 x 8 heads x 128 of each token
    told = {"model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14_336}
    told |= {"num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8}
    told |= {"cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38], "vocab_size": 128_256}
    shape = architecture_from_config({"model_type": "mllama", "text_config": told})

    assert kv_elements_per_token(shape) == 32 * 2 * 8 * 128
    # 40 blocks of 218.1 million, two tables of 525.3 million: the 10.67 B of the card less the vision tower's 0.9
    assert count_parameters(shape).total == pytest.approx(9.775e9, rel=0.001)
    assert "8 layers attend to images" in shape.assumed[-1].render()


def test_local_layers_of_gpt_neo_have_their_window():
    # EleutherAI/gpt-neo-1.3B: global and local layers take turns; window_size 256
    told = {"model_type": "gpt_neo", "hidden_size": 2048, "num_layers": 24, "num_heads": 16}
    told |= {"attention_types": [[["global", "local"], 12]], "window_size": 256}
    told |= {"vocab_size": 50_257, "max_position_embeddings": 2048, "intermediate_size": None}
    shape = architecture_from_config(told)

    assert (shape.sliding_layers, shape.sliding_window) == (12, 256)
    assert count_parameters(shape).total == pytest.approx(1.316e9, rel=COUNT_TOLERANCE)


@pytest.mark.parametrize(("layers", "full"), [(20, 4), (32, 8), (22, 6)])
def test_layers_after_the_last_whole_group_of_bailing_see_everything(layers, full):
    # modeling_bailing_moe_v2_5.py: softmax where (i + 1) % g == 0 or i >= L // g * g
    config = {**LLAMA, "model_type": "bailing_moe_linear", "num_hidden_layers": layers}
    config |= {"layer_group_size": 4 if layers == 32 else 5}
    assert attention_layers(architecture_from_config(config)) == full


def _encoder(kind, hidden, layers, heads, vocab, **told):
    told |= {"hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": layers}
    return {"model_type": kind, "num_attention_heads": heads, "vocab_size": vocab, **told}


NLLB = {"model_type": "m2m_100", "d_model": 2048, "encoder_layers": 24, "decoder_layers": 24}
NLLB |= {"encoder_attention_heads": 16, "encoder_ffn_dim": 8192, "vocab_size": 256_206}


@pytest.mark.parametrize(
    ("config", "published", "causal"),
    [
        (NLLB, 3.345e9, True),  # facebook/nllb-200-3.3B
        (_encoder("esm", 1280, 33, 20, 33, position_embedding_type="rotary"), 0.651e9, False),  # esm2_t33_650M_UR50D
        (_encoder("xlm-roberta-xl", 2560, 36, 32, 250_880, max_position_embeddings=514), 3.48e9, False),
        # allenai/longformer-base-4096: 148.7 million, with the projections of tokens that see everything
        (
            _encoder("longformer", 768, 12, 12, 50_265, max_position_embeddings=4098, attention_window=[512] * 12),
            0.1487e9, False,
        ),
    ],
    ids=["NLLB-3.3B", "ESM-2 650M", "XLM-R XL", "Longformer base"],
)  # fmt: skip
def test_families_beside_llama_count_what_they_publish(config, published, causal):
    shape = architecture_from_config(config)
    assert total_parameters(shape) == pytest.approx(published, rel=COUNT_TOLERANCE)
    assert (shape.causal, shape.gated, shape.assumed) == (causal, False, ())


def test_the_window_of_longformer_holds_in_every_layer():
    told = {"attention_window": [512] * 12, "max_position_embeddings": 4098}
    shape = architecture_from_config(_encoder("longformer", 768, 12, 12, 50_265, **told))
    assert (shape.sliding_layers, shape.sliding_window) == (12, 512)


def test_a_model_type_that_is_not_known_is_said():
    told = {k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"}
    said = architecture_from_config({**told, "model_type": "zebra_9"}).assumed

    assert [text.render().split(":")[0] for text in said] == [
        "model_type is zebra_9, which is not known"
    ]
    assert architecture_from_config(told).assumed == ()
    assert architecture_from_config({**LLAMA, "model_type": "zebra_9"}).assumed == ()


@pytest.mark.parametrize("row", ROWS, ids=[row["model"] for row in ROWS])
def test_no_published_model_type_is_taken_for_unknown(row):
    told = architecture_from_config(row["config"]).assumed
    assert not any("is not known" in text.render() for text in told)


def test_what_a_class_default_gave_is_said():
    shape = architecture_from_config(BY_NAME["gemma-3-4b-it"])
    assert "vocab_size 262208" in shape.assumed[0].render()


def test_layers_without_a_cache_count_once():
    shape = architecture_from_config(BY_NAME["falcon-mamba-7b"])
    assert attention_layers(shape) == 0
    assert kv_elements(shape, 1_000_000) == kv_elements(shape, 1) > 0


def test_attention_and_state_space_side_by_side():
    shape = architecture_from_config(BY_NAME["Falcon-H1-34B-Base"])
    assert (attention_layers(shape), shape.linear_layers) == (72, 72)


@pytest.mark.parametrize(
    ("change", "sparse"),
    [
        ({"decoder_sparse_step": 2}, 14),
        ({"mlp_only_layers": [0, 1, 2]}, 25),
        ({"decoder_sparse_step": 2, "mlp_only_layers": [1]}, 13),
    ],
)
def test_dense_layers_among_sparse_ones(change, sparse):
    shape = architecture_from_config({**BY_NAME["Qwen2-57B-A14B"], **change})
    assert moe_layers(shape) == sparse


@pytest.mark.parametrize(
    ("told", "context"),
    [
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}}, 131_072),
        ({"rope_scaling": {"type": "linear", "factor": 4}}, 131_072),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 32_768),
        ({"rope_scaling": {"type": "dynamic", "factor": "2"}}, 32_768),
        ({"rope_scaling": None}, 32_768),
    ],
)  # fmt: skip
def test_rotary_scaling_lengthens_the_context(told, context):
    config = {**BY_NAME["Qwen2.5-7B"], "max_position_embeddings": 32_768, **told}
    assert architecture_from_config(config).max_context == context


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"block_configs": [{"attention": {"no_op": True}}]}, "block_configs"),  # Nemotron-NAS
        ({"compress_ratios": [0, 4, 128]}, "compress_ratios"),  # DeepSeek-V4
        ({"num_key_value_heads_per_layer": [4] * 10 + [2] * 22}, "num_key_value_heads_per_layer"),
        ({"block_types": ["recurrent", "attention"]}, "block_types"),  # RecurrentGemma
        ({"layer_types": ["retention"] * 126}, "layer_types"),
        ({"layer_types": ["full_attention"] * 3}, "layer_types"),
        ({"layer_types": ["full_attention"] * 127}, "layer_types"),
        ({"attn_type_list": [0, 1]}, "attn_type_list"),  # MiniMax-Text
        ({"attention_chunk_size": 8192, "no_rope_layers": [1, 1, 1, 0]}, "no_rope_layers"),  # Llama 4
        ({"num_experts": 8, "num_experts_per_tok": 2, "moe_layer_freq": [1] * 4}, "moe_layer_freq"),
        ({"num_experts": 8, "num_experts_per_tok": 2, "mlp_layer_types": ["sparse"]}, "mlp_layer_types"),
        ({"sliding_window": 8, "num_attention_heads_per_layer": [128]}, "num_attention_heads_per_layer"),
        ({"attention_types": [[["global", "local"], 12]]}, "attention_types"),
        ({"attention_types": [[["global", "strided"], 63]]}, "attention_types"),
        ({"layer_types": ["sliding_attention"] * 126}, "sliding_window"),
        ({"attention_window": [512] * 126}, "attention_window"),  # of LED: its encoder's alone
        ({"model_type": "longformer", "attention_window": [256, 512] * 63}, "attention_window"),
        ({"cross_attention_layers": [3, 8]}, "cross_attention_layers"),
        ({"model_type": "mllama_text_model", "cross_attention_layers": [3, 126]}, "cross_attention_layers"),
        ({"hybrid_override_pattern": "M*?"}, "hybrid_override_pattern"),
        ({"mamba_d_state": 16}, "mamba_d_state"),
        ({"sliding_window": 4096, "sliding_window_pattern": "LXG"}, "sliding_window_pattern"),
        ({"intermediate_size": None}, "intermediate_size"),
        ({"intermediate_size": [1, 2, 3]}, "intermediate_size"),
        ({"intermediate_size": [1, "x"] * 63}, "intermediate_size"),
        ({"vocab_size": None}, "vocab_size"),
        ({"vocab_size": 10**400}, "vocab_size"),
        ({"hidden_size": float("inf")}, "hidden_size"),
        ({"hidden_size": float("nan")}, "hidden_size"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
        ({"num_attention_heads": "一百二十八"}, "num_attention_heads"),
        ({"head_dim": -128}, "head_dim"),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, "qk_nope_head_dim"),
        ({"num_local_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": -1}, "n_shared_experts"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_by_its_name(change, field):
    with pytest.raises(InputError) as raised:
        architecture_from_config({**LLAMA, **change})
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"moe": MixtureOfExperts(8, 2, 64, every=0)}, "moe.every"),
        ({"moe": MixtureOfExperts(8, 2, 64, shared_ffn=-1)}, "moe.shared_ffn"),
        ({"moe": MixtureOfExperts(10**30, 2, 64)}, "moe.experts"),
        ({"mla": LatentAttention(-5, 64)}, "mla.kv_latent"),
        ({"linear_layers": 1, "state_space": StateSpace("mamba", -1.0, 0.0)}, "state_space.params"),
        ({"linear_layers": 1, "state_space": StateSpace("mamba", 1.0, float("nan"))}, "state_space.state_elements"),
        ({"ffn": 10**400}, "ffn"),
        ({"mlp_layers": 5}, "mlp_layers"),
        ({"attention_layers": -1}, "attention_layers"),
        ({"position_embeddings": -1}, "position_embeddings"),
        ({"params_total": float("inf")}, "params_total"),
        ({"layers": 35, "sliding_layers": 28, "sliding_window": 512, "kv_shared_layers": 15}, "kv_shared_windowed"),
        ({"kv_shared_layers": 2, "kv_shared_windowed": 1}, "kv_shared_windowed"),  # none is windowed
    ],
)  # fmt: skip
def test_a_shape_spelled_out_is_refused_by_its_field(change, field):
    shape = Architecture("x", 2, 64, 4, 4, 16, 128, 100)
    with pytest.raises(InputError) as raised:
        validate(replace(shape, **change))
    assert raised.value.field == field


def test_shared_caches_need_the_list_of_layers_where_some_are_windowed():
    # Gemma 3n E4B: 35 layers, each fifth sees all; the last 15 (12 windowed) read the cache of others: 4 + 16 keep one
    kinds = (["sliding_attention"] * 4 + ["full_attention"]) * 7
    config = {**LLAMA, "model_type": "gemma3n_text", "num_hidden_layers": 35, "sliding_window": 512}
    config |= {"num_kv_shared_layers": 15}

    shape = architecture_from_config({**config, "layer_types": kinds})
    assert [group.cached for group in attention_groups(shape)] == [4, 16]
    with pytest.raises(InputError) as raised:
        architecture_from_config(config)
    assert (raised.value.field, raised.value.value) == ("num_kv_shared_layers", "15")


def test_adapters_on_all_linear_layers_reach_every_expert():
    # PEFT prints 242,221,056 trainable parameters for Mixtral 8x7B, 39,976,960 for Llama-2-7B, both at rank 16
    mixtral = {**BY_NAME["Mixtral-8x22B-v0.1"], "hidden_size": 4096, "intermediate_size": 14_336}
    mixtral |= {"num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32_000}
    targets = ("q", "k", "v", "o", "mlp")

    sparse = adapter_parameters(architecture_from_config(mixtral), 16, targets)
    dense = adapter_parameters(architecture_from_config(BY_NAME["Llama-2-7b-hf"]), 16, targets)

    assert sparse == pytest.approx(242_221_056, rel=0.001)
    assert dense == 39_976_960


def test_latent_attention_trains_at_the_width_of_its_heads():
    # DeepSeek-V3: 128 heads of 128 + 64 for queries and keys, of 128 for values; hidden 7168, latents 1536 and 512
    shape = Architecture("v3", 61, 7168, 128, 128, 56, 18_432, 129_280)
    shape = replace(shape, mla=LatentAttention(512, 64, q_latent=1536, nope_dim=128, v_dim=128))
    lone = {target: adapter_parameters(shape, 1, (target,)) / 61 for target in "qkvo"}

    columns = _architecture_columns(shape, 4096)
    assert columns["qkv_ratio"] == pytest.approx((2 * 128 * 192 + 128 * 128) / 7168)
    assert columns["kv_ratio"] == pytest.approx((128 * 192 + 128 * 128) / 7168)
    assert lone["o"] == 128 * 128 + 7168
    assert lone["q"] == (7168 + 1536) + (1536 + 128 * 192)
    assert lone["k"] == 7168 + 512 + 64
    assert lone["v"] == 512 + 128 * (128 + 128)


def _tensors(*weights):
    groups = {f"group_{i}": {"weights": one} for i, one in enumerate(weights)}
    return {"quant_method": "compressed-tensors", "config_groups": groups}


def _hqq(bits):
    """As HqqConfig.to_dict writes it (transformers, quantization_config.py)."""
    inner = {"weight_quant_params": {"nbits": bits, "group_size": 64, "axis": 1}}
    return {"quant_method": "hqq", "quant_config": inner, "skip_modules": ["lm_head"]}


FP8 = {"num_bits": 8, "type": "float"}


@pytest.mark.parametrize(
    ("stated", "dtype"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "eetq", "weights": "int8"}, "int8"),  # EetqConfig: int8 alone
        (_hqq(8), "int8"),
        (_hqq(4), "int4"),
        ({"quant_method": "auto-round", "bits": 4, "data_type": "int", "sym": True}, "int4"),
        ({"quant_method": "auto-round", "bits": 4, "data_type": "mx_fp", "group_size": 32}, "mxfp4"),
        ({"quant_method": "auto-round", "bits": 8, "data_type": "fp"}, "fp8"),
        ({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}, "fp8"),  # DeepSeek-V3
        ({"quant_method": "fbgemm_fp8"}, "fp8"),  # Llama-3.1-405B-FP8
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}, "mxfp4"),  # gpt-oss
        (_tensors({"num_bits": 4, "type": "float", "group_size": 32}), "mxfp4"),
        (_tensors({"num_bits": 4, "type": "float", "group_size": 16}), "fp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
        (_tensors(FP8), "fp8"),
        (_tensors({"num_bits": 4, "type": "int"}), "int4"),  # Kimi-K2-Thinking
        (_tensors(FP8, {"num_bits": 4, "type": "float"}), "fp4"),
        ({}, None),
        (None, None),
    ],
)  # fmt: skip
def test_the_config_states_the_type_of_its_weights(stated, dtype):
    assert stated_weights({"quantization_config": stated}) == dtype
    assert stated_weights({"text_config": {"quantization_config": stated}}) == dtype


@pytest.mark.parametrize(
    "stated",
    [
        {"quant_method": "gptq", "bits": 3},
        {"quant_method": "gptq", "bits": [4]},
        {"quant_method": "gptq", "group_size": 128},
        {
            "quant_method": "hqq",
            "quant_config": {"self_attn.q_proj": {"nbits": 4}},
        },  # layer by layer
        {"quant_method": "aqlm", "nbits_per_codebook": 16, "num_codebooks": 1, "in_group_size": 8},
        {"quant_method": "auto-round", "bits": 6, "data_type": "fp"},
        {"quant_method": "bitnet"},
        _tensors({"num_bits": 6, "type": "float"}),
        {"config_groups": {"a": 5}},
    ],
)
def test_an_unknown_quantisation_asks_for_the_precision(stated):
    with pytest.raises(InputError) as raised:
        stated_weights({"quantization_config": stated})
    assert raised.value.field == "weight_precision"
    assert "quantization_config" in str(raised.value)


def _service(**told):
    config = {**BY_NAME["Qwen2.5-7B"], "quantization_config": {"quant_method": "awq", "bits": 4}}
    given = {"kind": "online_inference", "config": config, "requests_per_day": 1000}
    return parse_request({**given, "input_tokens": 500, "output_tokens": 500, **told})


def test_a_quantised_config_is_estimated_as_it_is_stored_and_says_so():
    request = _service()
    assert request.workload["weight_precision"] == "int4"
    assert "INT4" in request.model.architecture.assumed[-1].render()


def test_a_told_precision_wins_over_the_config_and_says_so():
    request = _service(weight_precision="fp16")
    assert request.workload["weight_precision"] == "fp16"
    assert "takes FP16" in request.model.architecture.assumed[-1].render()


def searched(*blocks):
    """Llama 3.1 70B as an architecture search leaves it."""
    told = {"model_type": "nemotron-nas", "hidden_size": 8192, "num_hidden_layers": len(blocks)}
    told |= {"num_attention_heads": 64, "vocab_size": 128_256, "tie_word_embeddings": False}
    return told | {
        "num_key_value_heads": None,
        "intermediate_size": None,
        "block_configs": list(blocks),
    }


def block(attention, ffn):
    kept = {
        "n_heads_in_group": 8,
        "no_op": False,
        "replace_with_linear": False,
        "sparsify": None,
        "window_length": None,
    }
    whole = {"ffn_mult": 5.25, "no_op": False, "replace_with_linear": False, "sparsify": None}
    return {"attention": kept | attention, "ffn": whole | ffn}


NONE = {"n_heads_in_group": None, "no_op": True}
LINEAR = {"n_heads_in_group": None, "replace_with_linear": True}


def test_blocks_that_a_search_left_whole_are_the_model_it_began_from():
    shape = architecture_from_config(searched(*[block({}, {})] * 80))
    assert count_parameters(shape).total == pytest.approx(70.55e9, rel=1e-3)  # Llama 3.1 70B
    assert kv_elements_per_token(shape) * 2 == 320 * 1024
    assert not shape.assumed


def test_blocks_of_a_search_count_what_they_keep():
    blocks = [block({}, {})] * 40 + [block(NONE, {"ffn_mult": 2.625})] * 20
    blocks += [block(LINEAR, {})] * 10 + [block(NONE, {"ffn_mult": None, "no_op": True})] * 10
    shape = architecture_from_config(searched(*blocks))

    h, attention = 8192, 8192 * (2 * 8192 + 2 * 1024)
    wide, narrow = 3 * h * 28_672, 3 * h * 14_336
    expected = 2 * 128_256 * h + 40 * attention + 50 * wide + 20 * narrow + 10 * h * h
    assert count_parameters(shape).total == pytest.approx(expected, rel=1e-3)
    assert kv_elements_per_token(shape) * 2 == 40 * 4 * 1024  # forty layers keep a cache
    assert kv_elements(shape, 1000.0) == 1000.0 * kv_elements_per_token(
        shape
    )  # a matrix keeps none
    assert any("mean width" in str(note) for note in shape.assumed)


@pytest.mark.parametrize(
    "odd",
    [
        block({"n_heads_in_group": 16}, {}),  # other heads than the other layers
        block({"n_heads_in_group": 7}, {}),
        block({"n_heads_in_group": True}, {}),
        block({"window_length": 4096}, {}),
        block({}, {"ffn_mult": -1}),
        block({}, {"sparsify": ["q_proj"]}),
        {"block_type": "moe"},
        "attention",
    ],
)
def test_a_block_that_no_shape_stands_for_is_refused_by_name(odd):
    with pytest.raises(InputError) as refused:
        architecture_from_config(searched(*[block({}, {})] * 3, odd))
    assert refused.value.field == "block_configs"
