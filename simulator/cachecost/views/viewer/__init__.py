"""What `cachecost view` answers, as JSON objects; the shapes are in docs/reference/output-formats.md."""
