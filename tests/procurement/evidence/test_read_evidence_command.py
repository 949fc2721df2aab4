import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.procurement.evidence.samples import FOLDER, expected

NAME = "15_nvidia_smi_qx_identity_mismatch.xml"


def run(*arguments):
    out = StringIO()
    call_command("read_evidence", *arguments, stdout=out)
    return out.getvalue()


def test_json_of_one_file_needs_no_database():
    shown = json.loads(run(str(FOLDER / NAME), "--json"))
    assert shown["format"] == "nvidia_smi_q_xml"
    assert shown["policy_version"]


def test_several_files_make_an_array():
    names = ["11_nccl_allreduce_8xh100_ok.txt", NAME]
    shown = json.loads(run(*(str(FOLDER / name) for name in names), "--json"))
    assert [s["sample"] for s in shown] == names


def test_the_context_decides(tmp_path):
    context = tmp_path / "context.json"
    context.write_text(json.dumps({"order_context": expected(NAME)["order_context"]}))
    shown = json.loads(run(str(FOLDER / NAME), "--json", "--context", str(context)))
    assert shown["gpus"][1]["verdict"] == "fail"
    assert shown["gpus"][1]["reasons"][0].startswith("model_mismatch")


def test_a_summary_for_a_person_names_reasons_and_places():
    text = run(str(FOLDER / "10_gpu_burn_ok_but_never_ran.log"))
    assert "fail" in text
    assert "0 Gflop/s" in text
    assert "line 11" in text


def test_a_missing_file_or_bad_context_is_an_error_not_a_trace(tmp_path):
    with pytest.raises(CommandError):
        run(str(tmp_path / "none.log"))
    context = tmp_path / "context.json"
    context.write_text('{"policy_used": [1]}')
    with pytest.raises(CommandError, match="policy_used"):
        run(str(FOLDER / NAME), "--context", str(context))
