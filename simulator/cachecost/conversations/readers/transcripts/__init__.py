"""What agents write down themselves."""
