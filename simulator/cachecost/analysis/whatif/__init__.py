"""What other ways to send a recording would have cost: promises, each replayed beside the recording as it was sent."""
