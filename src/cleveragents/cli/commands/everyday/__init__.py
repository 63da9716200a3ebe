"""The words for every day: short forms of the plan commands, on the plan of where one stands."""
