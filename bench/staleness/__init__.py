"""Whether what is remembered still holds: what it costs to tell, and how often the answer is right."""
