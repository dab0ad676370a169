"""The loop guard measured: approaches told apart, loops found."""
