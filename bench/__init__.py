"""Speed and memory, always as ratios against a floor measured in the same run: machines are shared and noisy."""
