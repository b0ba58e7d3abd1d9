"""Arguments of the services: the settings of a stack file as types, and the plan that they become."""
