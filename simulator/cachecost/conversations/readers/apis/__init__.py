"""The APIs of models: bodies, answers and streams of each, converted to the Messages API."""
