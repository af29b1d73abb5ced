"""What each host and model does and charges: dated, sourced data files and their loaders."""
