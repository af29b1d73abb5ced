"""Budgets: replays of a scenario's strategies, their baselines, and the verdict on each limit."""
