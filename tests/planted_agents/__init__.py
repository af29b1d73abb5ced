"""Edits of the agents in docs/examples/agents: faults that cost money, and changes that cost nothing.

- `edits`: an edit, and a copy of an agent's folder with edits
- `python_sdk`, `typescript_sdk`, `langchain_agent`: the edits of each agent
- `costs`: what a recorded session costs by the naive model of the rulebook, with prices written down again
- `checks`: `cachecost check` of an edited agent, and what it has to say of each fault
"""
