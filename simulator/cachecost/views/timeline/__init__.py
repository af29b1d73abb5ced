"""Prompt timelines as SVG: a column a call, as high as its prompt. `run`, `replay`, `explain` and `bill` share them."""
