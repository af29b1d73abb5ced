"""Foreign formats in, conversations or requests out; one file a format."""
