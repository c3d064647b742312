"""The command line: one file a verb. What a verb does is elsewhere; here it is asked for, shown and put away."""
