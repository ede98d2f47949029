"""Speed against the peers, measured by turns: `python -m benchmarks --help`; see README.md here."""
