"""A local server that implements the Messages API and bills by the simulated cache."""
