"""Reads Crush's session store."""
