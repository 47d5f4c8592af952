"""The site of all pages: `cargo xtask site` builds it. Its notebooks are executed, and a broken link is an error.

The contents of the site are the links of docs/README.md, heading by heading."""

import pathlib
import posixpath
import re

project = "evb"
copyright = "the authors of evb"
html_title = "evb"
root_doc = "docs/README"
extensions = ["myst_nb"]
html_theme = "furo"
include_patterns = ["*.md", "docs/**", "papers/**", "lab/*.md", "velo/**", "crates/README.md"]
exclude_patterns = ["README.md", "target"]

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

myst_heading_anchors = 4
# Examples of output have no language, and CSV none that is known.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

# Pages whose links are the contents of the site, below the heading where they stand.
_CONTENTS = ("docs/README", "docs/papers", "docs/reference/networks/README", "velo/README")

_HEADING_OR_LINK = re.compile(r"^## (.+)$|^\*\*(.+)\*\*$|\]\(([^()#: ]+)\)", re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^()#: ]+)\)")


def _read(app, page, source):
    folder = pathlib.Path(app.srcdir, page).parent
    source[0] = _LINK.sub(lambda link: _to_page(folder, link), source[0])
    if page in _CONTENTS:
        source[0] += _contents(source[0], page)


def _to_page(folder, link):
    """A link to a folder becomes one to its README. A folder without one is only named: the site does not have it."""
    text, target = link.groups()
    if not (folder / target).is_dir():
        return link[0]
    page = pathlib.PurePosixPath(target, "README.md")
    return f"[{text}]({page})" if (folder / page).exists() else text


def _contents(text, page):
    caption, contents, seen = "", {}, set(_CONTENTS) - {page} if page != _CONTENTS[0] else set()
    for heading, part, target in _HEADING_OR_LINK.findall(text):
        caption = heading or part or caption
        name, ending = posixpath.splitext(posixpath.normpath(posixpath.join(posixpath.dirname(page), target)))
        if ending in (".md", ".ipynb") and name not in seen:
            seen.add(name)
            contents.setdefault(caption, []).append("/" + name)
    return "".join(
        "\n\n```{toctree}\n" + (f":caption: {caption}\n" if caption else "") + ":hidden:\n\n" + "\n".join(pages) + "\n```\n"
        for caption, pages in contents.items()
    )


def setup(app):
    app.connect("source-read", _read)
