"""Operations that ask a deployed model server: address, models, metrics, queries."""
