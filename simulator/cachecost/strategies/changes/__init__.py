"""What agents do to a conversation or to their calls besides marking: each a few lines that compose."""
