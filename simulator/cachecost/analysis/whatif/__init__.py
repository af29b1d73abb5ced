"""What alternatives to the recorded calls would have cost; each is replayed and compared with the recording."""
