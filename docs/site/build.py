"""The documentation as a site, with a reference of every command and module: `make docs`.

The pages of docs/ are read on GitHub too, so they link to files of the repository. Here they are copied with the same
layout, and those links lead to pages made for them: a module to its place in the reference, any other file to a page
that shows it. Sphinx then builds the site, and a warning is an error; last, every local link in what it wrote is
followed.

    python docs/site/build.py out/site
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag

import click

from roamcast.cli.main import main as roamcast

ROOT: Final = Path(__file__).resolve().parents[2]
SITE: Final = Path(__file__).resolve().parent
LINK: Final = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
PARTS: Final = {
    "Start": ("docs/tutorial", "docs/scenario", "docs/campaigns", "docs/glossary", "docs/index"),
    "How to": (
        *("docs/choose", "docs/comparison", "docs/replay", "docs/report", "docs/data-and-clusters", "docs/python"),
        *(
            "docs/traces",
            "docs/papers",
            "docs/writing-a-protocol",
            "docs/live",
            "docs/mqtt",
            "docs/installation",
            "docs/lab",
        ),
        *("docs/security", "docs/troubleshooting"),
    ),
    "Reference": ("commands", "docs/content", "docs/facts", "docs/measures", "api/roamcast", "CHANGELOG"),
    "Explanation": ("docs/architecture", "docs/model", "docs/why", "CONTRIBUTING", "SECURITY"),
    "Protocols": tuple(sorted(f"docs/protocols/{page.stem}" for page in ROOT.glob("docs/protocols/*.md"))),
    "Made from data": (
        "docs/ledger/verdicts",
        "docs/ledger/readings",
        "docs/measures/table",
        "studies/map/README",
        "studies/map/tables",
    ),
}
ORPHAN: Final = "---\norphan: true\n---\n\n"
"""Before a page that stands in no table of contents."""
LANGUAGES: Final = {".py": "python", ".toml": "toml", ".xml": "xml", ".service": "ini"}


def build(out: Path) -> None:
    """Writes the site; raises if anything in it is wrong."""
    source = out / "source"
    shutil.rmtree(out, ignore_errors=True)
    lay_out(source)
    (source / "commands.md").write_text(commands_page())
    write_reference(source)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-j",
        "auto",
        "-c",
        str(SITE),
        str(source),
        str(out / "html"),
    ]
    if subprocess.run(command, check=False).returncode:
        sys.exit("the documentation has errors: they are above")
    if dead := sorted(dead_links(out / "html")):
        sys.exit("links that lead nowhere:\n" + "\n".join(dead))


# --- The pages ---


def lay_out(source: Path) -> None:
    """Copies the pages and pictures of the repository, with links to its other files turned to pages of their own."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("studies/**/*.md")]
    for page in pages:
        target = source / page.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(LINK.sub(lambda link, page=page: _turned(link, page, source), page.read_text()))
    for picture in (*ROOT.glob("docs/**/*.svg"), *ROOT.glob("docs/**/*.png")):
        target = source / picture.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    contents = "".join(_contents(title, names) for title, names in PARTS.items())
    (source / "README.md").rename(source / "index.md")
    with (source / "index.md").open("a") as index:
        index.write(contents)


def _contents(title: str, names: tuple[str, ...]) -> str:
    listed = "\n".join(names)
    return f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```\n"


def _turned(link: re.Match[str], page: Path, source: Path) -> str:
    """Where a link of a page leads in the site."""
    target = (page.parent / link[1]).resolve()
    if "://" in link[1] or not target.is_relative_to(ROOT) or not target.exists():
        return link[0]
    name = target.relative_to(ROOT)
    back = "../" * len(page.relative_to(ROOT).parts[:-1])
    if name == Path("README.md"):
        return f"{back}index.md"
    if name.is_relative_to("src") and (target.suffix == ".py" or (target / "__init__.py").exists()):
        module = module_of(target)
        package = module if target.is_dir() or target.name == "__init__.py" else module.rpartition(".")[0]
        # A heading's anchor is its text without the dots.
        return f"{back}api/{package}.md" + (f"#{module.replace('.', '')}" if package != module else "")
    if name.suffix in (".md", ".svg", ".png"):
        return link[0]
    _show(target, source)
    return f"{back}files/{name.as_posix()}.md"


def _show(shown: Path, source: Path) -> None:
    """Makes a page of a file, or of a folder's files; links lead there, and the table of contents does not."""
    name = shown.relative_to(ROOT).as_posix()
    page = source / "files" / f"{name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    if shown.is_dir():
        files = [file for file in sorted(shown.iterdir()) if file.suffix in LANGUAGES]
        for file in files:
            _show(file, source)
        listed = "\n".join(f"- [{file.name}]({shown.name}/{file.name}.md)" for file in files)
        page.write_text(f"{ORPHAN}# {name}\n\n{listed}")
        return
    language = LANGUAGES.get(shown.suffix, "text")
    page.write_text(f"{ORPHAN}# {name}\n\n`````{{code-block}} {language}\n{shown.read_text()}`````\n")


# --- The reference ---


def commands_page() -> str:
    """What `--help` prints, of every command."""
    return "# Commands\n\n" + "".join(
        f"{'#' * (1 + max(1, name.count(' ')))} {name}\n\n```text\n{text}\n```\n\n"
        for name, text in helps(roamcast, "roamcast")
    )


def helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """A command's help and those of its own commands."""
    settings = {**command.context_settings, "terminal_width": 100}
    context = click.Context(command, info_name=name.rpartition(" ")[2], parent=parent, **settings)
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            found = command.get_command(context, word)
            assert found is not None
            yield from helps(found, f"{name} {word}", context)


def write_reference(source: Path) -> None:
    """A page per package, with a section for each of its modules."""
    (source / "api").mkdir()
    for init in sorted((ROOT / "src/roamcast").rglob("__init__.py")):
        name = module_of(init)
        modules = [file for file in sorted(init.parent.glob("*.py")) if not file.stem.startswith("__")]
        sections = [f"# {name}\n\n{_automodule(name)}"]
        sections += [f"## {module_of(file)}\n\n{_automodule(module_of(file))}" for file in modules]
        inside = [module_of(inner) for inner in sorted(init.parent.glob("*/__init__.py"))]
        listed = "\n".join(inside)
        sections += [f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n"] if inside else []
        (source / f"api/{name}.md").write_text("\n".join(sections))


def module_of(file: Path) -> str:
    """The dotted name of a file or folder below src."""
    return ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def _automodule(name: str) -> str:
    # What the front door gives is described where it is made: links lead there.
    once = "   :no-index:\n" if name == "roamcast" else ""
    return f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n   :undoc-members:\n{once}```\n"


# --- Dead links ---


class Links(HTMLParser):
    """Where a page's links lead, and the places in it that a link can name."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.places: set[str] = {""}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, _: str, attributes: list[tuple[str, str | None]]) -> None:
        for key, value in attributes:
            if key in ("href", "src") and value is not None:
                self.targets.add(value)
            elif key == "id" and value is not None:
                self.places.add(value)


def dead_links(site: Path) -> Iterator[str]:
    """Local links whose file or place in it is not there."""
    pages = {page.resolve(): Links(page) for page in site.rglob("*.html")}
    for page, links in pages.items():
        for target in links.targets:
            path, place = urldefrag(target)
            if re.match(r"[a-z]+:", path):
                continue
            file = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
            if not file.exists() or (place and file in pages and unquote(place) not in pages[file].places):
                yield f"{page.relative_to(site.resolve())}: {target}"


if __name__ == "__main__":
    build(Path(sys.argv[1]))
    print(Path(sys.argv[1]) / "html/index.html")
