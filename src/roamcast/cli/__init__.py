"""The command line: one file per verb. It reads options, calls the layers below, and shows or stores the result."""
