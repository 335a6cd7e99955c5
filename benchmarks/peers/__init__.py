"""What everview is measured against."""
