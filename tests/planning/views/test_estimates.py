"""The quick estimate and the live panel: complete, shareable, in both languages, refusing at the field."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest
from django.urls import reverse

from catalog.services.loading import load_reference
from core.roles import Role
from planning.estimate_text import range_text
from planning.estimators.types import Band, Grade
from planning.study.workloads import Kind

SEVEN = {
    "kind": "pretraining",
    "parameters": "7B",
    "tokens": "1T",
    "accelerator": "nvidia-a100-sxm4-80gb",
}
HTMX = {"headers": {"HX-Request": "true"}}
ESTIMATED = sorted(Kind)


@pytest.fixture
def client(client, make_user, team):
    client.force_login(make_user(Role.REQUESTER, team=team, language="en"))
    return client


@pytest.fixture
def show(client):
    """`show(query)` → the page's text."""

    def call(query=None, **extra):
        response = client.get(reverse("quick-estimate"), query or {}, **extra)
        assert response.status_code == 200
        return response.content.decode()

    return call


@pytest.mark.parametrize("kind", ESTIMATED)
def test_every_kind_opens_with_an_example(show, kind):
    text = show({"kind": kind.value})

    assert "This cannot be estimated yet" not in text
    assert "H100 SXM5 80GB" in text


def test_the_answer_is_whole(show):
    text = show(SEVEN | {"accelerators": "8", "framework": "megatron"})

    parts = (
        "Memory of one accelerator", "Optimiser states", "Saturation", "Bandwidth", "Time to train", "P10–P90",
        "Layout", "Assumptions", "Trace", "Pipeline bubble", "Evidence:", "training-2026",
    )  # fmt: skip
    for part in parts:
        assert part in text


def test_what_does_not_fit_says_what_is_lacking_and_what_would_help(show):
    text = show(SEVEN | {"accelerators": "1"})

    assert "GB are lacking on each accelerator" in text
    assert "Use 2 accelerators with everything sharded and recomputed." in text
    assert "more than there is" in text


def test_the_page_speaks_chinese(client, make_user, team):
    client.force_login(make_user(Role.REQUESTER, team=team, language="zh-hans"))
    text = client.get(reverse("quick-estimate"), SEVEN | {"accelerators": "1"}).content.decode()

    for part in ("快速估算", "显存", "优化器状态", "训练时间", "每张卡还差"):
        assert part in text


def test_refusals_stand_at_the_field_and_nothing_is_lost(show):
    text = show(SEVEN | {"tokens": "-5", "sequence_length": "8192", "micro_batch": "2"})

    assert 'id="refusal-tokens" aria-live="polite">Training tokens is -5; it must be within' in text
    assert 'value="8192"' in text
    assert 'value="-5"' in text


def test_an_unknown_model_is_refused_with_the_nearest(show):
    text = show({"kind": "pretraining", "model": "llama-3-1-9b", "tokens": "1T"})

    assert "llama-3-1-9b is not a model of the catalogue; near it are:" in text


def test_a_live_update_is_the_result_alone_and_moves_the_address(client):
    response = client.get(reverse("quick-estimate"), SEVEN | {"accelerators": "8"}, **HTMX)
    text = response.content.decode()

    assert "<html" not in text
    assert 'hx-swap-oob="true"' in text
    assert response["HX-Replace-Url"].startswith("/estimate/?kind=pretraining&")


def test_the_address_brings_the_same_estimate_back(client):
    first = client.get(
        reverse("quick-estimate"), SEVEN | {"accelerators": "8", "sharding": "zero3", "mfu": "40 %"}
    )
    address = urlsplit(first.context["address"])
    again = client.get(f"{address.path}?{address.query}")

    assert again.context["comparison"] == first.context["comparison"]
    assert again.context["form"].told() == first.context["form"].told()
    assert again.context["form"].told()["mfu"] == "40 %"


def test_a_pasted_config_is_read(show):
    config = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
              "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}  # fmt: skip
    told = {"kind": "finetuning", "tokens": "1B", "accelerator": "nvidia-h100-sxm5-80gb"}

    assert "Time to train" in show(told | {"config": json.dumps(config)})
    assert "num_hidden_layers is 0" in show(
        told | {"config": json.dumps(config | {"num_hidden_layers": 0})}
    )
    assert "is not valid JSON" in show(told | {"config": "{"})


def test_several_accelerators_are_compared(client):
    response = client.get(
        reverse("quick-estimate"),
        SEVEN | {"accelerators": "8", "accelerator": ["nvidia-h100-sxm5-80gb", "nvidia-l40s"]},
    )

    assert [row["slug"] for row in response.context["comparison"]["rows"]] == [
        "nvidia-h100-sxm5-80gb",
        "nvidia-l40s",
    ]


def test_queries_do_not_grow_with_what_is_shown(client, django_assert_max_num_queries):
    load_reference()
    client.get(reverse("quick-estimate"))
    with django_assert_max_num_queries(14):
        client.get(reverse("quick-estimate"))


def test_only_who_is_signed_in_estimates(client):
    client.logout()

    for name in ("quick-estimate", "request-estimate"):
        assert client.get(reverse(name)).status_code == 302
    assert client.post("/api/v1/estimate/", {}, content_type="application/json").status_code in (
        401,
        403,
    )


def test_the_panel_reads_the_form_and_ignores_what_is_not_its_own(client):
    form = {"kind": "pretraining", "model": "llama-3-1-8b", "tokens": "1T", "title": "Our model", "team": "3",
            "need_by": "2027-06-30", "data_residence": "anywhere", "justification": "because"}  # fmt: skip
    text = client.post(reverse("request-estimate"), form).content.decode()

    assert "Memory of one accelerator" in text
    assert "Time to train" in text
    assert "/estimate/?" in text


def test_the_panel_of_an_unfinished_form_says_what_is_missing(client):
    response = client.post(f"{reverse('request-estimate')}?kind=pretraining", {"tokens": ""})

    assert response.status_code == 200
    assert "Training tokens are missing" in response.content.decode()


def test_the_api_answers_as_the_command_does(client):
    response = client.post(
        "/api/v1/estimate/",
        json.dumps(SEVEN | {"accelerators": 8}),
        content_type="application/json",
    )
    body = response.json()

    assert response.status_code == 200
    assert body["schema"] == "headroom/estimate-1"
    assert body["estimates"][0]["accelerators"]["total"] == 8


def test_the_api_refuses_by_field(client):
    response = client.post(
        "/api/v1/estimate/", json.dumps(SEVEN | {"layers": 3}), content_type="application/json"
    )

    assert response.status_code == 422
    assert response.json()["error"]["field"] == "layers"


def test_a_service_is_sized_on_the_page(show):
    text = show(
        {"kind": "online_inference", "model": "llama-3-1-70b", "requests_per_day": "2M", "input_tokens": "1000",
         "output_tokens": "300", "accelerator": "nvidia-h100-sxm5-80gb", "latency_class": "chat"}
    )  # fmt: skip

    assert "Time to first token, p95 of the fleet" in text
    assert "replicas ×" in text
    assert '<option value="fp16" selected>' in text


def test_a_told_number_still_shows_every_percentile_at_both_loads(show):
    told = {
        "kind": "online_inference", "model": "llama-3-1-8b", "requests_per_day": "2M", "input_tokens": "600",
        "output_tokens": "150", "latency_class": "chat", "accelerator": "nvidia-h100-sxm5-80gb", "accelerators": "4",
        "peak_factor": "2",
    }  # fmt: skip
    text = show(told)
    table = text[text.index("Latency of the fleet") :]
    table = table[: table.index("</table>")]

    assert [f'class="num">{p}</th>' in table for p in ("p50", "p95", "p99")] == [True] * 3
    for figure, loads in {
        "Wait": 3,
        "Time to first token": 4,
        "Mean time per output token": 4,
        "Whole answer": 4,
    }.items():
        assert table.count(f"{figure}, ") == loads
    for load in ("average load", "peak load", "peak load and model error", "full capacity"):
        assert f"Mean time per output token, {load} (" in table
    cells = table[table.index("Mean time per output token, peak load (") :].split("</tr>")[0]
    assert cells.count("–</td>") == 2  # a mean is no percentile
    assert "where the model is off by its P90 error" in text


def test_a_picture_service_is_estimated_live_beside_its_request(client):
    response = client.post(
        f"{reverse('request-estimate')}?kind=online_samples",
        {"model": "sdxl-base-1-0", "requests_per_day": "20k", "weight_precision": "fp16"},
        **HTMX,
    )
    text = response.content.decode()

    assert response.status_code == 200
    assert "H100 SXM5 80GB" in text
    assert "samples/s" in text


@pytest.mark.parametrize(
    ("low", "high", "unit", "text"),
    [
        (12605, 22112, "tokens/s", "12,605 – 22,112 tokens/s"),
        (0.31, 0.54, "1", "31 – 54 %"),
        (900e6, 1.2e9, "B", "900 MB – 1.20 GB"),
        (5.0, 5.0, "B", ""),
    ],
)
def test_a_range_says_its_unit_once(low, high, unit, text):
    assert range_text(Band(low, low, high, unit, Grade.PUBLISHED)) == text
