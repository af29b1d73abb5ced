"""Cache models: how each kind of host matches a prompt against what it keeps, and why a call missed."""
