"""Budgets: what a scenario's strategies are played to, what they came to before, and what became of each limit."""
