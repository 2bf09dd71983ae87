"""One module per client: functions named after the loads, each taking a `Job` and giving numbers."""
