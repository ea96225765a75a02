"""What a fitted tree tells its reader: equations, reasons, importances, plainer trees."""
