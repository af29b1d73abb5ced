"""Scenario files: a question about what prompt caching costs, with all that its answer depends on."""

from cachecost.scenario.loading import ScenarioTalks, from_mapping, head_parts, load, load_conversations
from cachecost.scenario.models import Scenario
from cachecost.scenario.text import explain_defaults, schema

__all__ = [
    "Scenario",
    "ScenarioTalks",
    "explain_defaults",
    "from_mapping",
    "head_parts",
    "load",
    "load_conversations",
    "schema",
]
