"""Verbs. Takes: nothing. Gives: the verbs of a memory, a seat and its decisions, one row each. Never: runs a verb.

Their help texts and examples are in `help.txt`.
"""

from __future__ import annotations

from mnemarch.lazy import Lazy
from mnemarch.verbs import types as of
from mnemarch.verbs.types import Parameter, Verb, at_most, progress, record_type, version_of

_unit = Lazy("mnemarch.model.unit")
_CITATIONS = "commit:HASH, log:ID, human:NAME, test:NAME, file:PATH[#L1-L9] or symbol:PATH::NAME"
_LEVELS = "task, worktree, project or org"
_SIGNALS = "tests_passed, pr_merged, repeated_success, tests_failed, pr_reverted, contradicted; human_... by a person"

_UNIT = Parameter("unit_id", of.ID, "the id of the unit, or 6 characters of it", metavar="UNIT")
_REASON = Parameter("reason", of.TEXT, "why; it is kept in the log", flag="--reason", metavar="WHY")
_WHY = Parameter("reason", of.TEXT, "why", metavar="REASON")
_KEY = Parameter("key", of.WORDS, "idempotency key: a repeat with it gives the first answer", None, metavar="KEY")
_SESSION = Parameter("session", of.WORDS, "the conversation it belongs to", None, offered=False)
_QUERY = Parameter("query", of.TEXT, "a question or some words, in English or Korean", metavar="QUERY|-")
_FILE = Parameter("path", of.PATH, "the file")
_VERSION = version_of("the unit")
_ENTRY = (
    Parameter("kind", of.WORDS, "thought, tool_output, error, decision, ...", metavar="KIND"),
    Parameter("text", of.TEXT, "what to log", piped=True),
    Parameter("data", of.OBJECT, "a JSON object stored with it", None),
    _KEY,
    Parameter("occurred_at", of.INSTANT, "when it happened, if not now", None),
    _SESSION,
)
_CLAIM = (
    Parameter("content", of.TEXT, "what to remember", piped=True),
    Parameter("kind", of.CLAIMED, "fact (default), preference, profile, semantic, skill, ...", "fact"),
    Parameter("level", of.LEVEL, f"{_LEVELS} (default: the narrowest of the seat)", None),
    Parameter("domain", of.WORDS, "what it is about (default: global)", "global", metavar="NAME"),
    Parameter("citations", of.CITATION, f"{_CITATIONS}", (), "--cite", many=True),
    Parameter("importance", of.SHARE, "0 to 1 (default: 0.5)", 0.5),
    Parameter("occurred_at", of.INSTANT, "since when it is true, if not since now", None),
    _SESSION,
    _KEY,
    Parameter("attributes", of.OBJECT, "further fields, by name", None, offered=False),
)
_ENTRY_RECORD = record_type("log entry", _ENTRY, '{"kind": "thought", "text": "..."}')
_FADING = Parameter("decay_policy", of.WORDS, "how its confidence decays", None)
_CLAIM_RECORD = record_type(
    "claim", (*_CLAIM, _FADING), '{"content": "...", "kind": "fact"}', lambda **fields: _unit.Claim(**fields)
)
_ENTRY_LINES = "on standard input, one a line: {kind, text, data?, key?, occurred_at?}"
_CLAIM_LINES = "on standard input, one a line: {content, kind?, level?, citations?, ...}"
_ENTRIES = Parameter("entries", _ENTRY_RECORD, _ENTRY_LINES, many=True, piped=True)
_CLAIMS = Parameter("claims", _CLAIM_RECORD, _CLAIM_LINES, many=True, piped=True), progress("remembering claims")
_VERIFICATION = (
    Parameter("passed", of.FLAG, "your word whether the verification passed", None, "--passed|--failed"),
    Parameter("run", of.COMMAND, "run this test command, and verify by its tests", None, "--", True, "COMMAND ..."),
    Parameter("report", of.REPORT, "read the report of a run: JUnit XML, go test -json, TAP, jest or vitest", None),
    Parameter("tests", of.WORDS, "with your own word: a test that ran", (), "--test", many=True, metavar="NAME"),
    Parameter("commit", of.WORDS, "the commit that the tests ran on, or that was merged", None, metavar="HASH"),
    Parameter("analysis", of.OBJECT, "your own analysis: critique, score, key_decisions, ...", None),
    Parameter("error", of.OUTPUT, "the error of a failure", None),
    Parameter("approach", of.TEXT, "what was tried; after a success, what worked", None),
    Parameter("account", of.FLAG, "keep the episode now", True, offered=False),
)
_LISTED = (
    Parameter("kind", of.KIND, "fact, preference, episode, skill, ...", None),
    Parameter("status", of.STATUS, "hypothesis, verified, published, deprecated or archived", None),
    Parameter("level", of.LEVEL, _LEVELS, None),
    Parameter("domain", of.WORDS, "what they are about", None, metavar="NAME"),
    at_most(50),
    Parameter("after", of.ID, "the last id of the page before", None, metavar="UNIT"),
    Parameter("ids", of.ID, "only these", None, many=True, offered=False),
)
_RESOLUTION = (
    Parameter("conflict_id", of.ID, "the id of the conflict or the proposal"),
    Parameter("winner", of.ID, "the unit that wins", None, metavar="UNIT"),
    Parameter("both", of.FLAG, "both are true: neither excludes the other", False),
    _REASON,
    version_of("the unit that loses"),
)
_SUCCESSION = (
    Parameter("new_id", of.ID, "the id of the new unit", metavar="NEW"),
    Parameter("old_id", of.ID, "the id of the unit that is replaced", metavar="OLD"),
    _REASON,
    version_of("the old unit"),
)
_ABOUT = (
    Parameter("kinds", of.KIND, "only this kind", None, "--kind", many=True),
    Parameter("domain", of.WORDS, "only this domain, and global", None, metavar="NAME"),
    Parameter("phase", of.WORDS, "the stage of the work; it filters nothing", None, offered=False),
    Parameter("at_commit", of.WORDS, "what holds at that commit, instead of the one checked out", None, metavar="HASH"),
    Parameter("as_of", of.INSTANT, "what was true at that moment", None),
    Parameter("floor", of.FLOOR, "return nothing if an answer is less likely than this: 0 to 1, or auto", 0.0),
)

_DECISION = Parameter("decision_id", of.ID, "the id of any version of the decision")
_DOMAIN = Parameter("domain", of.WORDS, "what it is about (default: global)", "global", metavar="NAME")
_LEVEL = Parameter("level", of.LEVEL, f"{_LEVELS} (default: the narrowest that is allowed)", None)
OVERRIDE = Parameter("override", of.WORDS, "why you commit it although it is blocked", None, metavar="WHY")
_PROPOSAL = Parameter("proposal", of.PROPOSAL, "the proposal that `propose` returned")
_RELATED = (
    Parameter("source_id", of.ID, "the decision"),
    Parameter("relation", of.RELATION, "DEPENDS_ON, CONSTRAINS, VALIDATES, SUPERSEDES or REFINES"),
    Parameter("target_id", of.ID, "the other decision"),
)
_LOADING = (
    Parameter("domain", of.WORDS, "what the work is about", None, metavar="NAME"),
    Parameter("phase", of.WORDS, "the stage of the work; it changes nothing (D17: phases filter no memory)", None),
    Parameter("around", of.ID, "a decision to start from", None),
    at_most(200),
)
_EVIDENCE = (
    Parameter("content", of.TEXT, "the text, word for word"),
    Parameter("tags", of.WORDS, "a tag", (), "--tag", many=True),
    _LEVEL,
)
_ANCHOR = (
    Parameter("hint", of.WORDS, "what somebody would look for", metavar="HINT"),
    Parameter("target_id", of.ID, "the decision or evidence it leads to", metavar="TARGET"),
    Parameter("kind", of.ANCHOR_KIND, "runbook, entrypoint, wiring, config, invariant or gotcha"),
    _DOMAIN,
    _LEVEL,
)
_POLICY = (
    Parameter("text", of.TEXT, "the principle"),
    _DOMAIN,
    Parameter("level", of.LEVEL, "org (default) or project", "org"),
)
_REQUEST = Parameter("request_id", of.ID, "the whole id of the request")
_REACH = (
    _DECISION,
    Parameter("depth", of.NUMBER, "at most so many steps", None),
    Parameter("nodes", of.NUMBER, "at most so many decisions", None),
)
_PROPOSED = (
    Parameter("text", of.TEXT, "what is decided"),
    Parameter("reason", of.OBJECT, "why: {type, summary, tradeoff?}", None),
    Parameter("evidence", of.ID, "what it rests on", (), many=True),
    Parameter("snapshots", of.WORDS, "new evidence, word for word", (), many=True),
    Parameter("strength", of.STRENGTH, "axis, lock or normal", None),
    Parameter("domain", of.WORDS, "what it is about", None),
    Parameter("level", of.LEVEL, _LEVELS, None),
    Parameter("revises", of.ID, "the version that you saw; this one follows it", None),
)

_STAGE = (
    Verb("seat.log", "work", "Receipt", _ENTRY),
    Verb("seat.log_many", "work", "list[Receipt]", (_ENTRIES,), "log --batch"),
    Verb("seat.remember", "work", "Stored | Refused", _CLAIM),
    Verb("seat.remember_many", "work", "list[Stored | Refused]", _CLAIMS, "remember --batch"),
)
_SAID = (
    Parameter("text", of.TEXT, "what was said", piped=True),
    Parameter("source", of.WORDS, "user (default), assistant, tool, commit, ...", "user", metavar="SOURCE"),
    *_ENTRY[2:],
    Parameter("classifier", of.PYTHON, "a function that returns its bucket", None),
)
_INGEST = (
    Verb("seat.ingest", "work", "Ingested", _SAID),
    Verb("seat.ingest_many", "work", "list[Ingested]", (_ENTRIES, _SAID[-1]), "ingest --batch"),
    Verb("seat.ingest_file", "work", "list[Ingested]", (_FILE,), "ingest --file"),
    Verb("seat.ingested", "read", "Ingested", (Parameter("entry_id", of.ID, "the id of the entry"),), None),
)
_TRIED = Parameter("approach", of.TEXT, "what you are about to try")
_ERROR = Parameter("error", of.OUTPUT, "the error", piped=True)
_BEFORE = Parameter("approach", of.TEXT, "what was tried before it", None)
_LOOPS = (
    Verb("seat.validate_approach", "read", "ApproachValidation", (_TRIED,), "approach"),
    Verb("seat.fail", "work", "LoopVerdict", (_ERROR, _BEFORE, _KEY)),
    Verb("seat.failed_approaches", "read", "list[FailedApproach]", (), "attempts"),
    Verb("seat.mark_stuck", "work", "Receipt", (_WHY,), "stuck"),
    Verb("seat.clear_stuck", "work", "Receipt", (_WHY,), "stuck --clear"),
)
_TO = Parameter("to", of.LEVEL, "worktree, project (default) or org", "project")
_GATE = (
    Verb("seat.verify", "work", "Promotion", _VERIFICATION),
    Verb("seat.consolidate", "work", "Promotion | None", (), None),
    Verb("seat.promote", "work", "Stored | Refused", (_UNIT, _TO, _VERSION)),
)
_ERASURE = (
    Parameter("unit_id", of.ID, "the id of the unit or the entry, or 6 characters of it", metavar="ID"),
    _REASON,
    Parameter("copies", of.FLAG, "also erase the listed copies: other places with the same text", False),
    Parameter("dry_run", of.FLAG, "erase nothing; show what would go, and list the copies", False),
    _VERSION,
)
_WHY_IF_SAID = Parameter("reason", of.TEXT, "why; it is kept in the log", "", metavar="WHY")
_WHEN = "2h, 3d, today, 2026-11-01 or an instant"
_UNDO = (
    Parameter("actor", of.ACTOR, "whose writes are undone; you act as MNEMARCH_ACTOR, or as yourself", flag="--actor"),
    _WHY_IF_SAID,
    Parameter("session", of.WORDS, "only those of this conversation", None, metavar="ID"),
    Parameter("since", of.SINCE, f"only those since {_WHEN}", None),
    Parameter("dry_run", of.FLAG, "change nothing; show what would go, and what stays and why", False),
)
_UNDONE = Parameter("undo_id", of.ID, "the id that undo printed, or 6 characters of it", metavar="UNDO")
_KNOWLEDGE = (
    Verb("seat.get", "read", "Unit", (_UNIT,)),
    Verb("seat.units", "read", "list[Unit]", _LISTED),
    Verb("seat.explain", "read", "Explanation", (_UNIT,)),
    Verb("seat.related", "read", "list[Related]", (_UNIT,)),
    Verb("seat.history", "read", "list[Event]", (_UNIT,)),
    Verb("seat.conflicts", "read", "list[Dispute]"),
    Verb("seat.proposals", "read", "list[Dispute]"),
    Verb("seat.resolve", "work", "Dispute", _RESOLUTION),
    Verb("seat.cite", "work", "Unit", (_UNIT, Parameter("citation", of.CITATION, _CITATIONS), _VERSION)),
    Verb("seat.use", "work", "Unit", (_UNIT, _VERSION)),
    Verb("seat.validate", "work", "float", (_UNIT, Parameter("signal", of.SIGNAL, _SIGNALS), _VERSION)),
    Verb("seat.approve", "work", "Unit", (_UNIT, _VERSION)),
    Verb("seat.reject", "work", "Unit", (_UNIT, _REASON, _VERSION)),
    Verb("seat.withdraw", "work", "Unit", (_UNIT, _REASON, _VERSION)),
    Verb("seat.supersede", "work", "Unit", _SUCCESSION),
    Verb("seat.archive", "work", "Unit", (_UNIT, _REASON, _VERSION)),
    Verb("seat.revive", "work", "Unit", (_UNIT, _REASON, _VERSION)),
    Verb("seat.erase", "admin", "Erased", _ERASURE),
    Verb("seat.undo", "admin", "Undone", _UNDO),
    Verb("seat.revert", "admin", "Undone", (_UNDONE, _WHY_IF_SAID), "undo --revert"),
)
_ITEMS = Parameter("ids", of.ID, "the items, by their ids in the inbox", many=True, metavar="ITEM")
_READ = (
    Parameter("task", of.WORDS, "what this task recorded", None, offered=False),
    Parameter("worktree", of.WORDS, "what this worktree recorded", None, offered=False),
    Parameter("actor", of.ACTOR, "what this actor did", None, "--by"),
    Parameter("types", of.WORDS, "a type: unit.verified, or unit for all", None, "--type", many=True),
    Parameter("since", of.SINCE, _WHEN, None),
    Parameter("limit", of.NUMBER, "so many of the newest (default: 20)", 100, "--tail"),
    Parameter("after", of.ID, "only entries older than this one", None, metavar="ENTRY"),
    Parameter("beyond", of.NUMBER, "after this position, the oldest first", None, offered=False),
)
_ANYTHING = Parameter("id", of.ID, "the id of anything, or 6 characters of it")
_LOOK = (
    Verb("seat.events", "read", "list[Event]", _READ, "log --read"),
    Verb("seat.status", "read", "Overview"),
    Verb("seat.inbox", "read", "list[InboxItem]", (at_most(20),)),
    Verb("seat.accept", "work", "list[Settled]", (_ITEMS, progress("accepting units"))),
    Verb("seat.decline", "work", "list[Settled]", (_ITEMS, _REASON, progress("declining units"))),
    Verb("seat.show", "read", "Explanation | Dispute | Event", (_ANYTHING,)),
)
_AFTER = Parameter("after", of.ID, "the last id of the page before", None)
_DECISIONS = (
    Verb("decisions.active", "read", "list[Decision]", (_DOMAIN, at_most(50), _AFTER), "decisions list"),
    Verb("decisions.get", "read", "Decision", (_DECISION,), "decisions show"),
    Verb("decisions.history", "read", "list[Decision]", (_DECISION,), "decisions history"),
    Verb("decisions.load", "read", "list[Loaded]", _LOADING, "decisions load"),
    Verb("decisions.relate", "work", "None", _RELATED, "decisions relate"),
    Verb("decisions.unrelate", "work", "None", (*_RELATED, OVERRIDE), "decisions relate --drop"),
    Verb("decisions.relations", "read", "list[Relation]", (_DECISION,), "decisions relations"),
    Verb("decisions.add_evidence", "work", "Unit", _EVIDENCE, "decisions evidence"),
    Verb("decisions.add_anchor", "work", "Unit", _ANCHOR, "decisions anchor"),
    Verb("decisions.add_policy", "admin", "Unit", _POLICY, "decisions policy"),
    Verb("decisions.broken_anchors", "read", "list[Unit]", (at_most(200),), "decisions broken"),
    Verb("decisions.impact", "read", "Impact", _REACH, "impact"),
    Verb("decisions.propose", "work", "DecisionProposal", _PROPOSED, None),
    Verb("decisions.check", "", "None", (_PROPOSAL,), None),
    Verb("decisions.commit", "work", "Decision | Refused", (_PROPOSAL, OVERRIDE), None),
    Verb("decisions.requests", "read", "list[DecisionRequest]", (), None),
    Verb("decisions.accept_request", "work", "Decision", (_REQUEST, OVERRIDE), None),
    Verb("decisions.decline_request", "work", "None", (_REQUEST, _WHY), None),
    Verb("decisions.domains", "read", "list[str]", (), None),
    Verb("decisions.in_force", "read", "Decision", (_DECISION,), None),
)
_RULE = Parameter("rule_id", of.ID, "the id of the rule, or 6 characters of it", metavar="RULE")
_LISTED_RULES = (
    Parameter("category", of.WORDS, "null_safety, error_handling, readability, performance or security", None),
    Parameter("language", of.WORDS, "python, typescript, go, java or rust", None),
    Parameter("confidence", of.SHARE, "the least confidence; from 0.8 a rule is trusted", 0.0),
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
    Parameter("candidates", of.FLAG, "also apply rules that are not trusted yet", False),
)
_LIKE = (Parameter("name", of.WORDS, "the name of a rule"), Parameter("category", of.WORDS, "its category"))
_OBSERVED = Parameter("min_observations", of.NUMBER, "only rules judged at least so often (default: 3)", 3)
_ALPHA = Parameter("ema_alpha", of.SHARE, "the weight of this outcome (default: 0.2)", 0.2, offered=False)
_RULES = (
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
_ADDED = Parameter("content", of.TEXT, "what to add", piped=True)
_CHANGE = (
    Parameter("old", of.WORDS, "a text that occurs once in the section", metavar="OLD"),
    Parameter("new", of.WORDS, 'the new text; "" removes the old one', metavar="NEW"),
)
_PAGE = Parameter("page", of.NUMBER, "0 is the first page", 0)
_STYLE = Parameter("style", of.WORDS, "openai (default) or anthropic", "openai", metavar="NAME")
_TOOL_CALL = (
    Parameter("name", of.WORDS, "the tool", metavar="TOOL"),
    Parameter("arguments", of.OBJECT, "what the model passes to it"),
)
_CORE = (
    Verb("core.sections", "read", "list[CoreSection]", (), "core show"),
    Verb("core.core_memory_append", "work", "CoreSection", (_SECTION, _ADDED, _SECTION_VERSION), "core append"),
    Verb("core.core_memory_replace", "work", "CoreSection", (_SECTION, *_CHANGE, _SECTION_VERSION), "core replace"),
    Verb("core.history", "read", "list[Unit]", (_SECTION,), "core history"),
    Verb("core.conversation_search", "read", "list[Turn]", (_QUERY, _PAGE), "core search"),
    Verb("core.archival_memory_insert", "work", "Stored | Refused", (_ADDED,), None),
    Verb("core.archival_memory_search", "read", "list[Recalled]", (_QUERY, _PAGE), None),
    Verb("core.compiled", "read", "str", (), "core prompt"),
    Verb("core.tools", "read", "list[dict[str, Any]]", (_STYLE,), "core tools"),
    Verb("core.call", "work", "str", _TOOL_CALL, "core call"),
)
_IMPORT = (
    Parameter("path", of.PATH, "a file that another memory wrote, or a folder of notes", metavar="PATH"),
    Parameter("format", of.WORDS, "its format, if it is not recognised (see docs/howto/move.md)", None, "--from"),
    Parameter("only", of.WORDS, "import only this project, user or namespace; '*' for all", None),
    Parameter("dry_run", of.FLAG, "store nothing; show what would be imported", False),
    Parameter("strict", of.FLAG, "store nothing if anything can't be read", False),
)
_EPISODES = (
    Parameter("error", of.OUTPUT, "tasks that met this error", None),
    Parameter("query", of.TEXT, "tasks about this, in English or Korean", None, "--like"),
    at_most(20),
)
_COUNT = Parameter("count", of.PYTHON, "counts the tokens of a text", None)
_WITHOUT = Parameter("without", of.ID, "units to leave out", (), many=True, offered=False)
_TOKENS = Parameter("tokens", of.NUMBER, "the budget (default: 2000)", 2_000)
_K = Parameter("k", of.NUMBER, "how many at most (default: 8)", 8, "-k")
_PATHS = Parameter("paths", of.PATH, "files, from the root", many=True)
_RECALL = (
    Verb("seat.recall", "read", "Found", (_QUERY, _K, *_ABOUT)),
    Verb("seat.context", "read", "Pack", (_QUERY, _TOKENS, _COUNT, *_ABOUT, _WITHOUT)),
    Verb("seat.awaited_tests", "read", "list[str]", (), None),
    Verb("seat.about", "read", "list[Recalled]", (_PATHS,), None),
    Verb("episodes.search", "read", "list[Recalled]", _EPISODES, "episodes"),
)
_DRY_RUN = Parameter("dry_run", of.FLAG, "archive them; without this option they are only listed", True, "--apply")
_TARGET = Parameter("path", of.PATH, "the file; - writes to standard output", metavar="FILE|-")
_AUDIT = (
    Parameter("full", of.FLAG, "also check what an earlier audit saw, and the keys of texts", False),
    Parameter("accept", of.FLAG, "accept the log as it ends now, because you put back an older copy", False),
    progress("auditing events"),
)
_RECEIPT = Parameter("receipt", of.RECEIPT, "a receipt as --json printed it: the text, a file, or - for standard input")
_SEAT = Parameter("seat", of.SEAT, "the seat whose project is meant")
_NOTHING_DONE = Parameter("dry_run", of.FLAG, "change nothing; show what would be done", False)
_REFLECTION = (
    Parameter("limit", of.NUMBER, "make or change at most so many lessons", None),
    Parameter("seconds", of.NUMBER, "run for at most so many seconds; the next run continues there", None),
    _NOTHING_DONE,
    progress("reflecting lessons"),
)
_NIGHT = (Parameter("seat", of.SEAT, "the seat whose tree is compared"), _NOTHING_DONE, progress("maintaining steps"))
_MEANING = Parameter("meaning", of.FLAG, "also search by meaning from now on (needs mnemarch[semantic])", False)
_OPERATE = (
    Verb("memory.doctor", "admin", "list[Finding]"),
    Verb("memory.stats", "read", "Stats"),
    Verb("memory.audit", "read", "LogCheck", _AUDIT),
    Verb("memory.verify_receipt", "read", "ReceiptCheck", (_RECEIPT,), "verify-receipt"),
    Verb("memory.rebuild", "admin", "Rebuild", (progress("rebuilding events"),)),
    Verb("memory.reindex", "admin", "int", (progress("indexing units"), _MEANING)),
    Verb("memory.janitor", "admin", "Swept", (_SEAT, progress("comparing units"))),
    Verb("memory.prune", "admin", "Pruned", (_DRY_RUN,)),
    Verb("memory.cognify", "admin", "Cognified", (_SEAT, at_most(20), progress("analysing tasks"))),
    Verb("seat.reflect", "work", "Reflected", _REFLECTION),
    Verb("memory.maintain", "admin", "Maintained", _NIGHT),
    Verb("memory.export", "admin", "int", (_TARGET, progress("exporting events"))),
    Verb("seat.import_claims", "admin", "ImportedClaims", (*_IMPORT, progress("importing claims")), "import"),
    Verb("memory.import_", "admin", "Imported", (_FILE, progress("importing events")), "import --restore"),
    Verb("memory.copy_to", "", "Copied", (Parameter("target", of.PYTHON), progress("copying events")), None),
    Verb("memory.backup", "admin", "None", (_FILE,)),
    Verb("memory.now", "read", "datetime", (), None),
    Verb("memory.close", "", "None", (Parameter("indexes", of.PYTHON, "", None),), None),
)

# In the order of the data's path.
SECTIONS = {
    "stage: log and claim": (*_STAGE, *_INGEST),
    "loops: failed attempts": _LOOPS,
    "gate: verify and promote": _GATE,
    "look: the log, the work and the inbox": _LOOK,
    "knowledge: the life of a unit": _KNOWLEDGE,
    "decisions: versions, and what a change would reach": _DECISIONS,
    "rules: learned from patches": _RULES,
    "recall": _RECALL,
    "core: what is in every prompt": _CORE,
    "operate": _OPERATE,
}
VERBS = tuple(verb for verbs in SECTIONS.values() for verb in verbs)
