"""Campaigns as data: experiments, the runs they come to, the folder that holds the results. No Spark in here."""
