"""The policy pack `security`: who may call, what runs as whom, which secrets show, what stands open, whose it is."""
