"""The one table type of all reports, and its renderings: text, Markdown, HTML (`views/html`), CSV of JSON rows."""
