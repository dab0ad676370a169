"""The verbs of code rules and of core memory, and what an import takes."""

from __future__ import annotations

from mnemarch.verbs import types as of
from mnemarch.verbs.types import Parameter, Verb

_RULE = Parameter("rule_id", of.ID, "the id of the rule, or 6 characters of it", metavar="RULE")
_LISTED_RULES = (
    Parameter("category", of.WORDS, "null_safety, error_handling, readability, performance or security", None),
    Parameter("language", of.WORDS, "python, typescript, go, java or rust", None),
    Parameter("confidence", of.SHARE, "at least so sure: 0.8 is trusted", 0.0),
)
_PATCH = (
    Parameter("before", of.TEXT, "the code before the change"),
    Parameter("after", of.TEXT, "the code after it"),
    Parameter("path", of.WORDS, "the file, whose ending tells the language", "", metavar="FILE"),
    Parameter("language", of.WORDS, "python (default), typescript, go, java or rust", None),
    Parameter("commit", of.WORDS, "the commit that made the change", None),
    Parameter("evidence", of.ID, "the entry of the log that shows it", None),
)
_HELPED = Parameter("success", of.FLAG, "whether the rule was right", flag="--worked|--failed")
_SOURCE = (
    Parameter("source", of.TEXT, "the code"),
    _PATCH[2],
    Parameter("candidates", of.FLAG, "also by rules that are not trusted yet", False),
)
_LIKE = (Parameter("name", of.WORDS, "the name of a rule"), Parameter("category", of.WORDS, "its category"))
_OBSERVED = Parameter("min_observations", of.NUMBER, "judged so often (default: 3)", 3)
_ALPHA = Parameter("ema_alpha", of.SHARE, "how much this counts (default: 0.2)", 0.2, offered=False)
RULES = (
    Verb("rules.find_code_rules", "read", "list[CodeRule]", _LISTED_RULES, "rules list"),
    Verb("rules.get_code_rule", "read", "CodeRule", (_RULE,), "rules show"),
    Verb("rules.explain", "read", "RuleStory", (_RULE,), "rules explain"),
    Verb("rules.learn", "work", "Learned", _PATCH, None),
    Verb("rules.update_code_rule_confidence", "work", "CodeRule", (_RULE, _HELPED, _ALPHA), "rules judge"),
    Verb("rules.cleanup_weak_rules", "admin", "list[CodeRule]", (_OBSERVED,), "rules clean"),
    Verb("rules.save_code_rule", "admin", "CodeRule", (Parameter("rule", of.RULE, "a rule"),), None),
    Verb("rules.find_similar_rules", "read", "list[CodeRule]", _LIKE, None),
    Verb("rules.check", "read", "list[RuleHit]", _SOURCE, None),
    Verb("rules.rewritten", "read", "str", _SOURCE, None),
)
_SECTION = Parameter("section", of.WORDS, "persona, human, project or task", metavar="SECTION")
_SECTION_VERSION = Parameter("expected_version", of.NUMBER, "the version of the section that you saw", None)
_SAID = Parameter("content", of.TEXT, "what to add; - or nothing reads standard input", piped=True)
_CHANGE = (
    Parameter("old", of.WORDS, "a text that the section has once", metavar="OLD"),
    Parameter("new", of.WORDS, 'what takes its place; "" removes it', metavar="NEW"),
)
_QUERY = Parameter("query", of.TEXT, "a question or some words, in English or Korean", metavar="QUERY|-")
_PAGE = Parameter("page", of.NUMBER, "0 is the first page", 0)
_STYLE = Parameter("style", of.WORDS, "openai (default) or anthropic", "openai", metavar="NAME")
_TOOL_CALL = (
    Parameter("name", of.WORDS, "the tool", metavar="TOOL"),
    Parameter("arguments", of.OBJECT, "what the model passes to it"),
)
CORE = (
    Verb("core.sections", "read", "list[CoreSection]", (), "core show"),
    Verb("core.core_memory_append", "work", "CoreSection", (_SECTION, _SAID, _SECTION_VERSION), "core append"),
    Verb("core.core_memory_replace", "work", "CoreSection", (_SECTION, *_CHANGE, _SECTION_VERSION), "core replace"),
    Verb("core.history", "read", "list[Unit]", (_SECTION,), "core history"),
    Verb("core.conversation_search", "read", "list[Turn]", (_QUERY, _PAGE), "core search"),
    Verb("core.archival_memory_insert", "work", "Stored | Refused", (_SAID,), None),
    Verb("core.archival_memory_search", "read", "list[Recalled]", (_QUERY, _PAGE), None),
    Verb("core.compiled", "read", "str", (), "core prompt"),
    Verb("core.tools", "read", "list[dict[str, Any]]", (_STYLE,), "core tools"),
    Verb("core.call", "work", "str", _TOOL_CALL, "core call"),
)
IMPORT = (
    Parameter("path", of.PATH, "what another memory wrote: a file, or a folder of notes", metavar="PATH"),
    Parameter("format", of.WORDS, "its format, if that is not plain (see docs/howto/move.md)", None, "--from"),
    Parameter("only", of.WORDS, "of several projects, users or namespaces this one; '*' for all", None),
    Parameter("dry_run", of.FLAG, "store nothing: say what would come in", False),
    Parameter("strict", of.FLAG, "store nothing if anything can't be read", False),
)
