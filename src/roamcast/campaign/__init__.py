"""Campaigns as data: experiments, the runs planned from them, the folder of results. No Spark in here."""
