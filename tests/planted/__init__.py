"""Faults planted into logs of plain request bodies, and what each costs by a second, independent replay."""
