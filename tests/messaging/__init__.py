"""What tasks say to each other."""
