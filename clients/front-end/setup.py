"""Builds the front-end kit for Python: `python3 -m pip install clients/front-end`. It needs a C compiler."""

import sys

from setuptools import Extension, setup

# The buffer protocol belongs to the stable interface since Python 3.11: one build serves all later versions.
STABLE = sys.version_info >= (3, 11)

setup(
    name="evb-front-end",
    version="1.0",
    description="Sends the fragments of a front end to the event builder evb",
    license="Apache-2.0",
    python_requires=">=3.8",
    packages=["evb_front_end"],
    package_dir={"": "python"},
    package_data={"evb_front_end": ["*.pyi", "py.typed"]},
    ext_modules=[
        Extension(
            "evb_front_end._native",
            ["python/evb_front_end/native.c", "evb_front_end.c"],
            depends=["evb_front_end.h"],
            extra_compile_args=["-std=c11", "-O2", "-pthread"],
            extra_link_args=["-pthread"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
            py_limited_api=STABLE,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
