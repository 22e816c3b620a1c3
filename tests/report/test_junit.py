from xml.etree import ElementTree

from dynsnap.gate import Rule, judge
from dynsnap.report import to_junit, verdict_document
from tests.gate import made

HOSTILE = "<frog & 'co' \"x\"> ]]> \x1b[31m\x00\ufffe\ud800"


def suite():
    pair = made.pair(groups=(made.group("cat", lost=0.2), made.group("frog", lost=0.0)))
    comparison = made.comparison(pair, classes=("cat", "frog", "newt"))
    rules = [
        Rule(metric="lost", at_most=0.1, class_name="*"),
        Rule(metric="lost", at_most=0.1, on="bound", name=HOSTILE),
    ]
    root = ElementTree.fromstring(to_junit(verdict_document(judge(comparison, rules))).encode())
    assert root.tag == "testsuites"
    (found,) = root
    return found


def cases():
    return suite().findall("testcase")


def test_each_rule_and_part_is_a_test_case():
    found = suite()
    assert {key: found.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    assert [(case.get("name"), case[0].tag) for case in cases()][:3] == [
        ("lost ≤ 0.1 in every class (class cat)", "failure"),
        ("lost ≤ 0.1 in every class (class frog)", "system-out"),
        ("lost ≤ 0.1 in every class (class newt)", "skipped"),
    ]


def test_a_failure_says_what_was_found_and_what_was_asked_for():
    failure = cases()[0][0]
    for named in ("lost", "class cat", "0.2000", "[0.1500, 0.2500]", "at most 0.1"):
        assert named in failure.get("message")


def test_names_that_xml_cannot_hold_are_spelled_out():
    assert cases()[3].get("name") == (
        "<frog & 'co' \"x\"> ]]> \\x1b[31m\\x00\\ufffe\\ud800 (all inputs)"
    )


def test_whether_the_inputs_were_verified_is_a_property_of_the_suite():
    found = {each.get("name"): each.get("value") for each in suite().iter("property")}
    assert found.keys() == {"verification of old", "verification of new"}
    assert all("in memory" in value for value in found.values())
