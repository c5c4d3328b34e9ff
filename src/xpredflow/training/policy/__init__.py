"""The step-size policy, trained with GRPO."""
