"""A decision record as a value: what its fields say, and its text, so that nothing of it is lost."""

from __future__ import annotations

from mnemarch.model.value import value


@value
class AdrLink:
    """What one record has to do with another; the target is a file name, or a number as text."""

    relation: str
    target: str
    label: str = ""


@value
class AdrRecord:
    """One decision. `preamble` and `sections` are its text as read; a record made of fields alone has neither."""

    form: str = "nygard"
    number: int | None = None
    title: str = ""
    status: str = ""
    date: str = ""
    deciders: tuple[str, ...] = ()
    context: str = ""
    decision: str = ""
    consequences: str = ""
    drivers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    chosen: str = ""
    because: str = ""
    links: tuple[AdrLink, ...] = ()
    sections: tuple[tuple[str, str], ...] = ()
    preamble: str = ""
