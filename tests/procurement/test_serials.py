import pytest

from core.errors import InputError
from procurement.serials import UnitEntry, fold, parse_units, refuse_duplicates, split_list


@pytest.mark.parametrize("other", ["s1", "S1 ", "Ｓ1", " ｓ１", "S 1"])
def test_the_same_serial_in_another_dress_is_found_with_both_positions(other):
    with pytest.raises(InputError, match="positions 1 and 3"):
        refuse_duplicates(["S1", "S2", other])


def test_an_empty_serial_is_named_by_its_position():
    with pytest.raises(InputError, match="position 2"):
        refuse_duplicates(["S1", " "])


def test_a_pasted_list_is_split_at_commas_lines_and_spaces():
    assert split_list("A1, A2\nA3  A4；A5、A6") == ("A1", "A2", "A3", "A4", "A5", "A6")


def test_one_unit_a_line_with_what_else_is_known():
    found = parse_units("S1\n\nS2, GPU-1\tN1, 4\n")
    assert found == (UnitEntry("S1"), UnitEntry("S2", "GPU-1", "N1", "4"))
    with pytest.raises(InputError, match="Line 2"):
        parse_units("S1\na,b,c,d,e")


def test_full_width_and_case_fold_to_one():
    assert fold("ＡＢ－１２") == fold("ab-12")
