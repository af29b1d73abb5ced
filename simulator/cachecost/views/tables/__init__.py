"""Tables: columns, and their renderings as text, Markdown and CSV."""
