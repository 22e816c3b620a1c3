"""Packages as an installer leaves them: modules beside a dist-info folder with entry points."""

import tomllib


def install(folder, pyproject, modules):
    """Lay a package of plain modules into a folder, as `pip install --target` does."""
    about = tomllib.loads(pyproject)["project"]
    name, version = about["name"].replace("-", "_"), about["version"]
    for file, text in modules.items():
        (folder / file).write_text(text)
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {version}\n"
    )
    points = [
        line
        for group, entries in about["entry-points"].items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(points) + "\n")
    return folder
