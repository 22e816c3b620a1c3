"""The documented CI files follow their schemas, and their scripts do what the page says."""

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.cli.helpers import EXAMPLES, NEW, OLD, dynsnap
from tests.documents import blocks

pytestmark = pytest.mark.slow

yaml = pytest.importorskip("yaml")

PAGE = (EXAMPLES.parent / "docs" / "gate.md").read_text()
WORKFLOW, PIPELINE = blocks(PAGE, "yaml")
MARK = "<!-- dynsnap gate -->"
# Exit code, the rules that lead to it, and whether a page is written.
ENDINGS = {
    0: ('metric = "lost"\nat_most = 0.05\non = "bound"', True),
    1: ('metric = "lost"\nat_most = 0.001\non = "bound"', True),
    2: ('metric = "losst"\nat_most = 0.001\non = "bound"', False),
    3: ('metric = "lost"\nat_most = 0.05\non = "bound"\nclass = "none"', False),
    5: ('metric = "lost"\nat_most = 0.025\non = "bound"', True),
}


@pytest.mark.parametrize(
    ("text", "schema"), [(WORKFLOW, "github-workflows"), (PIPELINE, "gitlab-ci")]
)
def test_the_files_follow_their_schemas(tmp_path, text, schema):
    pytest.importorskip("check_jsonschema")
    file = tmp_path / "ci.yml"
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    if schema == "gitlab-ci":
        check += ["--data-transform", "gitlab-ci"]
    for content, code in (
        (text, 0),
        (text.replace("script:", "scripts:").replace("on:", "om:"), 1),
    ):
        file.write_text(content)
        made = subprocess.run([*check, str(file)], capture_output=True, text=True, check=False)
        assert made.returncode == code, made.stdout + made.stderr


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A checkout with `dynsnap` on the path, which does what it did here for the same rules."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program(programs / "python", f'exec "{sys.executable}" "$@"')
    program(
        programs / "dynsnap",
        'code=$(cat code); cp "made/$code"/gate.* .; cat "made/$code/stderr" >&2; exit "$code"',
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.parquet").symlink_to(NEW)
    assert dynsnap("baseline", "set", "prod", OLD).exit_code == 0
    commands = {line(text) for text in (WORKFLOW, PIPELINE)}
    assert len(commands) == 1
    for code, (rule, _) in ENDINGS.items():
        (tmp_path / "gate.toml").write_text(f"[[rule]]\n{rule}\n")
        made = dynsnap(*shlex.split(commands.copy().pop())[1:])
        assert made.exit_code == code, made.output
        folder = tmp_path / "made" / str(code)
        folder.mkdir(parents=True)
        (folder / "stderr").write_text(made.stderr)
        for written in ("gate.md", "gate.html", "gate.xml", "gate.toml"):
            if (tmp_path / written).exists():
                (tmp_path / written).rename(folder / written)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_REPOSITORY": "we/models",
        "PR": "7",
    }
    return tmp_path, environment


def line(text):
    """The command line of the gate in a script."""
    found = re.search(r"dynsnap gate (?:.*\\\n)*.*?(?= 2>)", text)[0]
    return " ".join(found.replace("\\\n", " ").split())


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(script, machine, **more):
    """Run a script as CI does: bash that stops at the first failure."""
    folder, environment = machine
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=environment | more,
        capture_output=True,
        text=True,
        check=False,
    )


# A stand-in for GitHub's command: comments are files, and a filter is answered as jq would.
GH = """
import json, pathlib, sys
folder = pathlib.Path({folder!r})
arguments = sys.argv[1:]
assert arguments[0] == "api"
comments = folder / "comments.json"
known = json.loads(comments.read_text()) if comments.exists() else []
if "--method" not in arguments:
    assert "--paginate" in arguments and "startswith" in arguments[arguments.index("--jq") + 1]
    assert arguments[2] == "repos/we/models/issues/7/comments"
    for one in known:
        if one["bot"] and one["body"].startswith({mark!r}):
            print(one["id"])
    sys.exit()
method, place = arguments[2], arguments[3]
field = arguments[arguments.index("-F") + 1]
body = pathlib.Path(field.removeprefix("body=@")).read_text()
if method == "POST":
    known.append({{"id": len(known) + 1, "bot": True, "body": body}})
else:
    assert method == "PATCH" and place.startswith("repos/we/models/issues/comments/")
    next(one for one in known if one["id"] == int(place.rsplit("/", 1)[1]))["body"] = body
comments.write_text(json.dumps(known))
"""


def test_the_workflow_updates_one_comment_on_every_ending(machine):
    folder, _ = machine
    steps = {step["name"]: step for step in yaml.safe_load(WORKFLOW)["jobs"]["gate"]["steps"]
             if "name" in step}  # fmt: skip
    (folder / "gh.py").write_text(GH.format(folder=str(folder), mark=MARK))
    program(folder / "programs" / "gh", f'exec "{sys.executable}" "{folder / "gh.py"}" "$@"')
    others = [{"id": 1, "bot": True, "body": "coverage"}, {"id": 2, "bot": False, "body": MARK}]
    (folder / "comments.json").write_text(json.dumps(others))
    for code, (_, page) in ENDINGS.items():
        (folder / "code").write_text(str(code))
        (folder / "output").unlink(missing_ok=True)
        made = run(steps["Judge"]["run"], machine)
        assert made.returncode == 0, made.stderr
        assert (folder / "output").read_text() == f"code={code}\n"
        assert [(folder / f"gate.{kind}").exists() for kind in ("html", "xml")] == [page, page]
        made = run(steps["Comment"]["run"], machine)
        assert made.returncode == 0, made.stderr
        *before, one = json.loads((folder / "comments.json").read_text())
        assert before == others and one["id"] == 3
        word = {0: "PASS", 1: "FAIL", 5: "UNRESOLVED"}.get(code, f"exit code {code}")
        assert one["body"].startswith(MARK) and word in one["body"]
        assert run(steps["Decide"]["run"], machine, CODE=str(code)).returncode == code
    assert run(steps["Decide"]["run"], machine, CODE="").returncode == 3
    # A long page is cut, in the middle of a character too, and the verdict stays.
    (folder / "code").write_text("0")
    for shift in ("x", "xx"):
        (folder / "made" / "0" / "gate.md").write_text(shift + "é" * 40_000)
        (folder / "output").unlink()
        made = run(steps["Judge"]["run"], machine)
        assert made.returncode == 0, made.stderr
        assert (folder / "output").read_text() == "code=0\n"
        assert 59_000 < len((folder / "comment.md").read_text(encoding="utf-8").encode()) < 61_000
    # Nothing was judged, so that an older comment that says PASS must not stay.
    (folder / "comment.md").unlink()
    assert run(steps["Comment"]["run"], machine).returncode == 0
    *before, one = json.loads((folder / "comments.json").read_text())
    assert before == others and one["body"].startswith(MARK) and "ERROR" in one["body"]
    assert all(steps[name]["if"] == "always()" for name in ("Comment", "Decide"))
    upload = next(step for step in steps.values() if "upload-artifact" in step.get("uses", ""))
    assert {"gate.html", "gate.xml"} <= set(upload["with"]["path"].split())


@pytest.fixture
def gitlab():
    """The notes of a merge request, as GitLab's API has them, 100 to a page."""
    notes = [{"id": place, "body": "other"} for place in range(1, 121)]

    class Notes(BaseHTTPRequestHandler):
        def answer(self, value):
            content = json.dumps(value).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self):
            place, _, query = self.path.partition("?")
            assert place == "/projects/4/merge_requests/7/notes"
            page = int(query.rpartition("page=")[2])
            self.answer(notes[100 * (page - 1) : 100 * page])

        def body(self):
            assert self.headers["PRIVATE-TOKEN"] == "secret"
            return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

        def do_POST(self):
            notes.append({"id": len(notes) + 1, "body": self.body()})
            self.answer(notes[-1])

        def do_PUT(self):
            note = notes[int(self.path.rsplit("/", 1)[1]) - 1]
            note["body"] = self.body()
            self.answer(note)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Notes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", notes
    server.shutdown()


def test_the_pipeline_updates_one_note_on_every_ending(machine, gitlab):
    folder, _ = machine
    address, notes = gitlab
    job = yaml.safe_load(PIPELINE)["gate"]
    install, *lines = job["script"]
    assert install.startswith("pip install")
    script = "\n".join(textwrap.dedent(line) for line in lines)
    variables = {
        "CI_API_V4_URL": address,
        "CI_PROJECT_ID": "4",
        "CI_MERGE_REQUEST_IID": "7",
        "GATE_TOKEN": "secret",
        "no_proxy": "*",
    }
    for code in ENDINGS:
        (folder / "code").write_text(str(code))
        made = run(script, machine, **variables)
        assert made.returncode == code, made.stderr
        assert len(notes) == 121 and notes[-1]["body"].startswith(MARK), made.stderr
        word = {0: "PASS", 1: "FAIL", 5: "UNRESOLVED"}.get(code, f"exit code {code}")
        assert word in notes[-1]["body"]
    del variables["GATE_TOKEN"]
    (folder / "code").write_text("1")
    assert run(script, machine, **variables).returncode == 1  # the verdict needs no comment
    assert job["allow_failure"] == {"exit_codes": 5}
    assert job["artifacts"]["when"] == "always"
    assert job["artifacts"]["reports"]["junit"] == "gate.xml"
