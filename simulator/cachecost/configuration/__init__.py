"""The settings of a project: `[tool.cachecost]` in pyproject.toml, or cachecost.toml."""
