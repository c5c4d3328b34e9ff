"""Step-size policies of the flow."""
