"""The rows and results of a replay: tokens and dollars by call, layer and strategy."""
