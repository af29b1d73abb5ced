"""What clients let a person set and what they do, by version: dated, sourced rows and their loaders."""
