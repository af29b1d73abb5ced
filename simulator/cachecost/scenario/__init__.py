"""Scenario files: a question about what prompt caching costs, with all that its answer depends on."""

from cachecost.scenario.loading import conversation_of, from_mapping, head_parts, load
from cachecost.scenario.models import Scenario
from cachecost.scenario.text import explain_defaults, schema

__all__ = ["Scenario", "conversation_of", "explain_defaults", "from_mapping", "head_parts", "load", "schema"]
