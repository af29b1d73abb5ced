"""What agents do to a conversation or to their calls besides placing breakpoints; changes compose."""
