"""Whether new rows look like the training rows."""
