"""Decision records. Takes: a folder of Markdown records, or a seat. Gives: decisions, or files. Never: invents one."""

from mnemarch.interfaces.adr.folder import AdrOutcome, export_folder, import_folder

__all__ = ["AdrOutcome", "export_folder", "import_folder"]
