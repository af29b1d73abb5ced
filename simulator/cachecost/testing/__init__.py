"""For tests of a project's own: what its requests would cost, without an API key and without a network."""

from cachecost.testing.cost import CacheCost

__all__ = ["CacheCost"]
