"""A local server that speaks the Messages API and bills as the simulated cache would."""
