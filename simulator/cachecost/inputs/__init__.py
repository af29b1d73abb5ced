"""Files that people write: read with the place of every value, faults told in their words."""
