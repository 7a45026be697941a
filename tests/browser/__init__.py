"""What people see, in real Chromium over a real server."""
