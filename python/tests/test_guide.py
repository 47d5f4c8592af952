"""The programs of the guides, run as they stand, with the output that they show."""

import contextlib
import io
import re
import unittest

from support import InFolder, ROOT

GUIDES = ROOT / "docs/guides"


class Guide(InFolder):
    def test_python(self):
        self.run_page("python.md", 10)

    def test_streams(self):
        self.run_page("streams.md", 3)

    def run_page(self, page, least):
        """Every program of the page prints what the page shows. It has more than so many blocks."""
        blocks = re.findall(r"```(python|text)\n(.*?)```", (GUIDES / page).read_text(), re.DOTALL)
        self.assertGreater(len(blocks), least)
        names, printed = {"__name__": "guide"}, ""
        for kind, text in blocks:
            if kind == "python":
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    exec(compile(text, page, "exec"), names)
                printed = output.getvalue()
            else:
                pattern = re.escape(text.strip()).replace(r"\.\.\.", ".*")
                self.assertRegex(printed.strip(), f"(?s)^{pattern}$")


if __name__ == "__main__":
    unittest.main()
