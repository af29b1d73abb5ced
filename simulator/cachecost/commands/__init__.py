"""One file a command: options in, a result to stdout, an exit code back."""
