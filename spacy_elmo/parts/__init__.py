"""Make an output in parts, here or on a cluster, so that a run can be continued."""
