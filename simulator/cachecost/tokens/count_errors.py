"""Why a file of token counts cannot be used. Apart from the file, so that SQLite is loaded only when it is opened."""


class CountsLocked(Exception):
    """Another process held a lock for too long. The file is fine."""


class DamagedCounts(Exception):
    """The file or a row of it is damaged."""


class CountsUnusable(Exception):
    """The file cannot be opened, read or written: no rights, no space, no folder."""
