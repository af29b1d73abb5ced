"""What people and machines read, one file a format."""
