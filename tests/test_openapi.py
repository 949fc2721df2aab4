"""The OpenAPI description is valid, and nothing in it is guessed."""

from django.core.management import call_command


def test_the_description_is_valid_and_without_warnings(tmp_path):
    target = tmp_path / "schema.yml"
    call_command("spectacular", "--file", str(target), "--validate", "--fail-on-warn")
    assert "\n  /api/v1/requests/:\n" in target.read_text()
