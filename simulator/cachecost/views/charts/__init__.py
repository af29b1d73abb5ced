"""Charts: colours, style and pictures shared by all charts."""
