"""Operations of load balancers' resource types: Compute Engine's, Certificate Manager's, and Cloud DNS's."""
