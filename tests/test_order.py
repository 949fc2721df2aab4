"""How the suite is shared out between workers (tests/conftest.py)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.conftest import file_of, longest_first


@dataclass
class Item:
    nodeid: str
    slow: bool = False

    def get_closest_marker(self, name: str) -> str | None:
        return name if self.slow and name == "slow" else None


def test_the_browsers_files_are_one_and_every_other_file_is_its_own():
    assert {file_of(f"tests/e2e/test_{name}.py::test_x[a::b]") for name in "ab"} == {"tests/e2e"}
    assert file_of("tests/core/test_a.py::test_x") == "tests/core/test_a.py"


@pytest.mark.parametrize("turned", [False, True])
def test_what_takes_long_begins_first_and_files_stay_together(turned):
    files = {"tests/a.py": 3, "tests/b.py": 5, "tests/slow.py": 2, "tests/e2e/x.py": 1}
    items = [
        Item(f"{name}::{n}", slow="slow" in name and n == 1) for name, k in files.items() for n in range(k)
    ]  # fmt: skip
    if turned:
        items.reverse()
    before = {name: [i.nodeid for i in items if i.nodeid.startswith(name)] for name in files}
    longest_first(items)  # type: ignore[arg-type]
    order = ("tests/e2e/x.py", "tests/slow.py", "tests/b.py", "tests/a.py")
    assert [item.nodeid for item in items] == [one for name in order for one in before[name]]
