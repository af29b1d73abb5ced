"""`run_case` for all tests of this folder."""

from case_files import run_case

__all__ = ["run_case"]
