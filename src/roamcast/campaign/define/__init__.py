"""What is to be run: experiments, the plan of runs, and the name of each."""
