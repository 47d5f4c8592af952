"""`python3 -m evb.events FILE... --output run.h5`: writes event files in formats that Python has libraries for."""

import argparse
import sys

from .. import EvbError
from . import FORMATS, export, open


def main():
    parser = argparse.ArgumentParser(prog="python3 -m evb.events", description="Writes events in another format, or says what is in event files.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="event files; give all files of a run together")
    parser.add_argument("--output", "-o", metavar="PATH", help="the file to write")
    parser.add_argument("--format", choices=list(FORMATS), help="the format; by the ending of the output by default")
    arguments = parser.parse_args()
    try:
        if arguments.output is None:
            print(open(arguments.files))
        else:
            export(arguments.files, arguments.output, arguments.format)
    except (EvbError, ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
