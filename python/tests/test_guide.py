"""The programs of the guide, run as they stand, with the output that it shows."""

import contextlib
import io
import re
import unittest

from support import InFolder, ROOT

GUIDE = ROOT / "docs/guides/python.md"


class Guide(InFolder):
    def test_every_program_prints_what_the_page_shows(self):
        blocks = re.findall(r"```(python|text)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        self.assertGreater(len(blocks), 10)
        names, printed = {"__name__": "guide"}, ""
        for kind, text in blocks:
            if kind == "python":
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    exec(compile(text, str(GUIDE), "exec"), names)
                printed = output.getvalue()
            else:
                pattern = re.escape(text.strip()).replace(r"\.\.\.", ".*")
                self.assertRegex(printed.strip(), f"(?s)^{pattern}$")


if __name__ == "__main__":
    unittest.main()
