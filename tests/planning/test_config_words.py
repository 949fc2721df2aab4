"""What was understood of a pasted config.json, where the data may be, and a framework that is told."""

from __future__ import annotations

import pytest
from django.utils import translation

from planning import reference, tables
from planning.forms.requests import RequestForm
from planning.forms.studies import WhatIfForm
from planning.models import Study
from planning.places import residence_choices
from planning.study.estimates import estimate_on
from planning.study.model import config_words, known_model
from planning.study.request import parse_request, request_json
from planning.study.workloads import FIELDS, Kind
from tests.planning import builders

QWEN = {
    "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 5120, "num_hidden_layers": 64,
    "num_attention_heads": 40, "num_key_value_heads": 8, "intermediate_size": 27648, "vocab_size": 152064,
    "max_position_embeddings": 32768, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip
SERVE = {"kind": "online_inference", "config": QWEN, "requests_per_day": "200k", "input_tokens": 1500,
         "output_tokens": 300, "latency_class": "chat"}  # fmt: skip
TUNE = {"kind": "finetuning", "model": "llama-3.1-8b", "tokens": "20M", "duration_days": 30}


def test_a_pasted_config_is_told_in_words():
    assert str(config_words(QWEN)) == "32.8 B, 64 layers, qwen2, GQA 8, context 32768, BF16"
    with translation.override("zh-hans"):
        assert tables.config_line(QWEN).startswith("32.8 B 参数，64 层，qwen2，GQA 8")
    assert tables.config_line({"hidden_size": "?"}) == "As pasted"


def test_weights_are_in_the_type_that_the_file_says():
    assert parse_request(SERVE).workload["weight_precision"] == "bf16"
    assert parse_request({**SERVE, "weight_precision": "fp8"}).workload["weight_precision"] == "fp8"
    plain = {name: value for name, value in QWEN.items() if name != "torch_dtype"}
    assert parse_request({**SERVE, "config": plain}).workload["weight_precision"] == "fp16"


@pytest.mark.parametrize("kind", ["pretraining", "finetuning", "lora", "preference"])
def test_a_framework_can_be_told_where_naming_it_is_advised(kind):
    assert "framework" in {field.name for field in FIELDS[kind]}


def test_a_framework_told_with_the_workload_reaches_the_estimate():
    request = parse_request({**TUNE, "framework": "torchtitan", "accelerators": 8})
    assert request_json(request)["framework"] == "torchtitan"
    known = known_model(request.model, reference.resolve_model)
    card = reference.resolve_accelerator("H100")

    def told(one):
        return [str(text) for text in estimate_on(one, known, card).estimate.warnings]

    assert not any("makes the estimate surer" in text for text in told(request))
    unnamed = parse_request({**TUNE, "accelerators": 8})
    assert any("makes the estimate surer" in text for text in told(unnamed))


@pytest.mark.django_db
def test_the_country_is_named():
    world = builders.world()
    form = RequestForm(kind=Kind.FINETUNING, user=world.requester)
    assert "framework" in form.fields
    choices = dict(form.fields["data_residence"].choices)
    assert choices == dict(residence_choices())
    assert choices["country"].startswith("In the country only: ")
    with translation.override("zh-hans"):
        assert dict(residence_choices())["country"].startswith("仅限境内：")


def test_sliders_start_where_the_study_stood():
    study = Study(
        result={"schema": "headroom/study-1", "request": {"kind": "finetuning"}},
        inputs={"owned_utilisation": 0.4711},
    )
    assert WhatIfForm(None, study=study).fields["utilisation"].initial == 0.47
    form = WhatIfForm({"utilisation": "0.47"}, study=study)
    assert form.is_valid()
    assert form.changes().utilisation is None
