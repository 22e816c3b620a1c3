"""The checks of a report as JUnit XML, for machines that collect test results."""

from xml.etree import ElementTree

from dynsnap.errors import one_line
from dynsnap.report.document import Document


def to_junit(document: Document) -> str:
    """The checks of a report as JUnit XML: one test case each.

    Example:
        >>> from dynsnap.report.document import Check
        >>> checks = (Check("lost ≤ 0.02 (all inputs)", "passed", "lost is 0.01."),)
        >>> document = Document(title="", sections=(), suite="gate", checks=checks)
        >>> print(to_junit(document).splitlines()[3].strip())
        <testcase classname="dynsnap.gate" name="lost ≤ 0.02 (all inputs)">
    """
    statuses = [check.status for check in document.checks]
    suite = ElementTree.Element(
        "testsuite",
        name=one_line(f"dynsnap {document.suite}: {document.title}"),
        tests=str(len(statuses)),
        failures=str(statuses.count("failed")),
        errors=str(statuses.count("unresolved")),
        skipped=str(statuses.count("skipped")),
    )
    if document.properties:
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in document.properties:
            ElementTree.SubElement(
                properties, "property", name=one_line(name), value=one_line(value)
            )
    for check in document.checks:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"dynsnap.{document.suite}",
            name=one_line(check.title),
        )
        told = one_line(check.text)
        if check.status == "failed":
            failure = ElementTree.SubElement(case, "failure", message=told, type="threshold")
            failure.text = told
        elif check.status == "unresolved":
            # Neither a failure nor a pass: collectors must not count it as one of them.
            error = ElementTree.SubElement(case, "error", message=told, type="unresolved")
            error.text = told
        elif check.status == "skipped":
            ElementTree.SubElement(case, "skipped", message=told)
        else:
            ElementTree.SubElement(case, "system-out").text = told
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    drawn: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{drawn}\n'
