"""Developer tools. They import `cachecost`, which never imports them, and are in no wheel. Run from the repository."""
