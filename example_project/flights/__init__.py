"""A small BI product: airlines ask for reports on all flights that left New York City in 2013."""
