"""What logs of other tools have in common."""
