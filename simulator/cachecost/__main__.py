"""`python -m cachecost`."""

from cachecost.cli import main

main()
