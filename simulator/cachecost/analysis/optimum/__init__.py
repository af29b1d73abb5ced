"""What the same bytes would have cost at best: a proven lower bound, a legal plan, and how far everything else is."""
