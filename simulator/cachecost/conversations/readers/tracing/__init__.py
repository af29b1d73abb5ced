"""What tracers and gateways keep of a call."""
