"""Install. Takes: the name of a coding agent's host. Gives: its hooks and its MCP server, written into its own files.
Never: touches an entry that is not Mnemarch's."""
