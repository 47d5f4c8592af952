"""Progress in a terminal or in a notebook."""

import importlib.util
import sys
import time

# Work that ends sooner shows nothing, in seconds.
PATIENCE = 1.0


class Bar:
    """A bar of tqdm, where it is installed; else nothing."""

    def __init__(self, name, wanted, total=None):
        self.name, self.total, self.bar, self.done = name, total, None, 0
        self.is_shown = wanted if wanted is not None else _is_interactive()
        self.start = time.monotonic()
        self.patience = 0.0 if wanted else PATIENCE

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.bar is not None:
            self.bar.close()

    def show_part(self, seconds, ended, part):
        """Shows the part of a simulation that is done."""
        self._show(part, 1.0, f"{seconds:.4g} s simulated, {ended} events")

    def advance(self, points):
        """Shows that so many points more are done."""
        self.done += points
        self._show(self.done, self.total, "")

    def _show(self, now, total, text):
        if not self.is_shown or time.monotonic() - self.start < self.patience:
            return
        if self.bar is None:
            self.bar = _made(self.name, total)
        if self.bar is not None:
            self.bar.n = round(now, 3)
            self.bar.set_postfix_str(text, refresh=True)


def _made(name, total):
    try:
        # Without widgets the automatic choice would warn in a notebook.
        if importlib.util.find_spec("ipywidgets"):
            from tqdm.auto import tqdm
        else:
            from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc=name, bar_format="{l_bar}{bar}| {elapsed}<{remaining} {postfix}")


def _is_interactive():
    if "IPython" in sys.modules:
        from IPython import get_ipython

        if get_ipython() is not None:
            return True
    return sys.stderr is not None and sys.stderr.isatty()
