"""Conversations that have sizes and no content, made into requests that can be sent."""
