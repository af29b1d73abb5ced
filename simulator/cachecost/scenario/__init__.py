"""Scenario files: a question about what prompt caching costs, with all that its answer depends on."""

from cachecost.scenario.conversations import ScenarioConversations, head_parts, load_conversations
from cachecost.scenario.loading import from_mapping, load
from cachecost.scenario.models import Scenario, explain_defaults, schema

__all__ = [
    "Scenario",
    "ScenarioConversations",
    "explain_defaults",
    "from_mapping",
    "head_parts",
    "load",
    "load_conversations",
    "schema",
]
