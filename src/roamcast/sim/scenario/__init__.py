"""What a scenario file may say."""
