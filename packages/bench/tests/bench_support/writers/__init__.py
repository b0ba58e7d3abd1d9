"""Result files of other load clients, each written as that client's own source writes it, of simulated requests."""
