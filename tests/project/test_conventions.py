"""The files that other programs read: citation, containers, workflow, issue forms and the list of licenses."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import typer
import yaml

from experiments.package_licenses import LIST, locked, row
from tests.project.documents import ROOT
from udml_core import __version__
from udml_core.cli.opening import explorer


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def parsed(name: str) -> Any:
    return yaml.safe_load(read(name))


def test_the_citation_and_the_changes_name_this_version() -> None:
    assert parsed("CITATION.cff")["version"] == __version__
    assert re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)[0] in (__version__, "Unreleased")


def test_the_image_runs_the_app_without_rights_and_asks_whether_it_lives() -> None:
    lines = re.sub(r"\\\n", "", read("Dockerfile")).splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith(("#", " "))]
    words = [step for step, *_ in steps]
    assert dict(steps)["USER"] not in ("root", "0")
    assert words.index("USER") < words.index("CMD")
    assert "_stcore/health" in dict(steps)["HEALTHCHECK"]
    program, *options = json.loads(dict(steps)["CMD"])
    assert program == "udml-explorer"
    typer.main.get_command(explorer).make_context(program, options)
    copied = next(rest for step, rest in steps if step == "COPY")
    assert all((ROOT / name).exists() for name in shlex.split(copied)[:-1])
    locked_install = next(rest for step, rest in steps if step == "RUN" and "requirements.lock" in rest)
    assert [("--require-hashes" in part, "-r requirements.lock" in part) for part in locked_install.split("&&")] == [
        (True, True), (False, False)], "pip refuses a file with hashes beside a package without one"


def test_only_the_proxy_of_the_composition_is_reached_from_outside() -> None:
    services, networks = (parsed("compose.yaml")[name] for name in ("services", "networks"))
    assert "ports" not in services["app"]
    assert all(networks[name]["internal"] for name in services["app"]["networks"])
    ((replaced, upstream),) = re.findall(r"s/([\d.:]+)/([\w:]+)/", services["proxy"]["command"])
    assert f"proxy_pass http://{replaced};" in read("assets/nginx.conf")
    assert [f"app:{port}" for port in re.findall(r"^EXPOSE (\d+)$", read("Dockerfile"), re.MULTILINE)] == [upstream]
    inside = [mount.split(":")[-2] for mount in services["proxy"]["volumes"]]
    configuration = read("assets/nginx.conf")
    assert all(path in configuration for path in inside if path.startswith("/etc"))
    assert (ROOT / services["proxy"]["volumes"][0].partition(":")[0]).exists()


def test_the_workflow_runs_what_every_machine_runs_and_writes_nothing() -> None:
    workflow = parsed(".github/workflows/ci.yml")
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert any(".ci/run" in step.get("run", "") for step in job["steps"])
    versions = [int(version) for step in job["steps"] if (version := step.get("uses", "").partition("checkout@v")[2])]
    assert versions
    assert min(versions) >= 5, "earlier versions run on node20, which GitHub removes"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert {"make check", "make test", "make docs", "make wheel"} <= set(commands)


def test_issue_forms_have_the_fields_that_they_need() -> None:
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")):
        form = parsed(str(path.relative_to(ROOT)))
        assert {"name", "description", "body"} <= set(form), path
        questions = [field for field in form["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in questions}) == len(questions) > 0
        assert all(field["attributes"]["label"] for field in questions)
        assert any(field.get("validations", {}).get("required") for field in questions)
    json.loads(read(".devcontainer/devcontainer.json"))


def test_the_list_of_licenses_has_every_package_of_the_lock() -> None:
    listed = re.findall(r"^\| (\S+) \| (.+?) \| (.+?) \|$", Path(LIST).read_text(encoding="utf-8"), re.MULTILINE)
    assert [(name, version) for name, version, _ in listed[1:]] == [row(need)[:2] for need in locked()]
    assert not [name for name, _, license in listed if not license.strip()]
