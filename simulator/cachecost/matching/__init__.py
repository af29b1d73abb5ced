"""How prompts find what is cached, besides breakpoints (`cachecost.cache`): grids, units, named objects, best effort.

Every model answers the same two questions as `PrefixCache`: `call` and `state` (`choosing.Matching`).
"""
