"""What the next message of a session costs: now, when its cache has expired, and after a change."""
