"""Operations on the machines of a lease while they run."""
