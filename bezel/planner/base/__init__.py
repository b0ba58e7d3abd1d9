"""What every rule of the plan uses: settings, their parsing, problems, names, money, durations, hardware."""
