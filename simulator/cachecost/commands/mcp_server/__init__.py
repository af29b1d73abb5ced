"""The server behind `cachecost mcp`: tools that run the commands with --json, and resources."""
