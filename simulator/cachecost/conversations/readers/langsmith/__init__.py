"""Reads LangSmith runs and LangChain messages."""
