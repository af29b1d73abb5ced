"""What a provider sees: requests, their blocks, and the prompt they render to."""
