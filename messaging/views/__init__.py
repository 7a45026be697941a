"""What people see of bots and conversations."""
