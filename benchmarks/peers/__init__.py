"""What people do without sparing, written as they would write it."""
