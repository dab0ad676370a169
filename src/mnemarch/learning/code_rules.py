"""A project's code rules: learned from patches, judged by later patches, kept in the log (M16, M18, M21, M22)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.learning.detect import detect_code_rules_from_patch, joint_rules, verdict
from mnemarch.learning.patches import Category, language_for, pattern_category, pieces
from mnemarch.learning.rule import CodeRule, apply_rules, form_of, hits_in
from mnemarch.learning.trees import LANGUAGES, parsed
from mnemarch.log.act import Act, Log
from mnemarch.model.caller import ActorKind, Caller, Level
from mnemarch.model.event import Event, EventType
from mnemarch.model.stamps import blake2b, instant
from mnemarch.model.value import Frozen, member_of, replace
from mnemarch.policy.admission import checked_count, checked_name, checked_share, checked_text, typed, typed_methods
from mnemarch.policy.permissions import Deed
from mnemarch.text.cache import pattern
from mnemarch.text.secrets import redacted_tree

EMA_ALPHA = 0.2
_UNTRUSTED_BY = 0.01
_TASKS_MIN = 2
_LITERAL = r"\$(?:STRING|NUMBER|LIST|TUPLE|DICT|SET)_\d+"
_LITERALS_MAX, _PATTERN_LINES_MAX = 5, 12
_SENTENCE = r"""["'](?:[^"'\n]*\w ){2}[^"'\n]*["']|["']{3}"""
_EXAMPLES_MAX = 30
_STORED = (
    "name description category before_pattern after_pattern pattern_type languages confidence observation_count"
    " success_count failure_count min_confidence_threshold promotion_threshold"
)
_PATTERN_BYTES_MAX, _COUNT_MAX = 65_536, 1_000_000_000
_PATTERN_TYPES = ("literal", "regex", "ast")
_COUNTED = ("confidence", "observation_count", "success_count", "failure_count")
_OF_RULES = (EventType.RULE_LEARNED, EventType.RULE_JUDGED)


class Learned(Frozen):
    """The result of learning from a patch: new rules, confirmed rules and contradicted rules.

    `repeated` counts changes that were read before.
    """

    new: tuple[CodeRule, ...] = ()
    confirmed: tuple[CodeRule, ...] = ()
    contradicted: tuple[CodeRule, ...] = ()
    repeated: int = 0


class RuleHit(Frozen):
    """A place where a rule applies: the line, its code, and the code that the rule would write."""

    rule: CodeRule
    line: int
    before: str
    after: str


class RuleStory(Frozen):
    """A rule with the events that taught and judged it, oldest first."""

    rule: CodeRule
    events: tuple[Event, ...]


@typed
def reinforce_rule(rule: CodeRule, success: bool, ema_alpha: float = EMA_ALPHA) -> CodeRule:
    """The rule after one more success or failure: `a * outcome + (1 - a) * confidence` (M18)."""
    success, alpha = bool(success), checked_share(ema_alpha, "ema_alpha")
    return replace(
        rule,
        confidence=alpha * success + (1 - alpha) * rule.confidence,
        observation_count=rule.observation_count + 1,
        success_count=rule.success_count + success,
        failure_count=rule.failure_count + (not success),
    )


def _checked(rule: CodeRule) -> CodeRule:
    """The same rule, if its fields are valid (M21). Raises `InvalidInput` if not."""
    checked_name(rule.name, "a rule's name")
    member_of(Category, rule.category, "category")
    for name in ("before_pattern", "after_pattern", "description"):
        if name != "description" or rule.description != "":
            checked_text(getattr(rule, name), f"The rule's {name}", _PATTERN_BYTES_MAX)
    for name in ("confidence", "min_confidence_threshold", "promotion_threshold"):
        checked_share(getattr(rule, name), name)
    for name in ("observation_count", "success_count", "failure_count"):
        checked_count(getattr(rule, name), name, _COUNT_MAX)
    if rule.pattern_type not in _PATTERN_TYPES:
        raise InvalidInput(f"{rule.pattern_type!r} is not a type of pattern.", hint=f"Use {', '.join(_PATTERN_TYPES)}.")
    if not rule.languages or not set(rule.languages) <= set(LANGUAGES):
        raise InvalidInput(f"{rule.languages!r} are not languages of rules.", hint=f"Use {', '.join(LANGUAGES)}.")
    return rule


def may_recur(rule: CodeRule) -> bool:
    """Whether a rule can apply again. Most edits of a history are made only once.

    Sentences, long lists of values, whole screens of code, and code without a variable do not come again.
    """
    old = rule.before_pattern
    literals = set(pattern(_LITERAL).findall(old))
    is_short = old.count("\n") < _PATTERN_LINES_MAX and len(literals) <= _LITERALS_MAX
    return "$" in old and is_short and pattern(_SENTENCE).search(old) is None


def _earned(act: Act, rule: CodeRule, task: str | None) -> CodeRule:
    """Keep a rule below the threshold of trust until it has earned it.

    It needs witnessed successes in two tasks, or the word of a person or a lead; a rule about security needs a person.
    A rule that one of them called wrong stays untrusted.
    """
    needed = {ActorKind.HUMAN} if rule.category == Category.SECURITY else {*ActorKind} - {ActorKind.AGENT}
    if rule.confidence < rule.promotion_threshold or act.caller.actor.kind in needed:
        return rule
    told = [event for event in (act.transaction.event(rule.id), *act.transaction.events_of_subject(rule.id)) if event]
    verdicts = [(event.payload or {}).get("success", True) for event in told if event.actor.kind is not ActorKind.AGENT]
    tasks = {task, *((event.payload or {}).get("task") for event in told)} - {None}
    if verdicts and verdicts[-1] and any(event.actor.kind in needed for event in told):
        return rule
    if not verdicts and len(tasks) >= _TASKS_MIN and rule.category != Category.SECURITY:
        return rule
    return replace(rule, confidence=rule.promotion_threshold - _UNTRUSTED_BY)


@typed
def cleanup_weak_rules(rules: Sequence[CodeRule], min_observations: int = 3) -> list[CodeRule]:
    """The rules without those that are weak after enough observations."""
    return [rule for rule in rules if rule.status != "weak" or rule.observation_count < min_observations]


@typed
def merge_duplicate_rules(rules: Sequence[CodeRule]) -> list[CodeRule]:
    """Merge rules with the same patterns and languages. Counts are summed; the most confident rule gives the rest."""
    merged: dict[object, CodeRule] = {}
    for rule in sorted(rules, key=lambda rule: -rule.confidence):
        known = merged.get(_patterns(rule))
        counts = {name: getattr(known or rule, name) + getattr(rule, name) for name in _COUNTED[1:]}
        merged[_patterns(rule)] = rule if known is None else replace(known, **counts)
    return list(merged.values())


def _patterns(rule: CodeRule) -> tuple[str, str, frozenset[str]]:
    """The identity of a rule. The language is part of it, since the same text may mean something else."""
    return rule.before_pattern, rule.after_pattern, frozenset(rule.languages)


@typed_methods
class CodeRules:
    """The rules that a seat's project has learned."""

    def __init__(self, log: Log, caller: Caller, *, is_witnessed: bool = False) -> None:
        """`is_witnessed`: the changes come from a task whose success this program saw."""
        self._log = log
        self._caller = caller
        self._task = caller.scope_key if is_witnessed else None
        self._project_id = caller.scope.at(Level.PROJECT).key

    # Learning

    def learn(
        self,
        before: str,
        after: str,
        *,
        path: str = "",
        language: str | None = None,
        commit: str | None = None,
        evidence: str | None = None,
    ) -> Learned:
        """Learn from a change of a file or a part of one, and judge the known rules by it.

        The same change counts once in each file. `commit` and `evidence` (the id of a log entry) say where it comes
        from; undoing the evidence removes the rule.
        """
        limit = self._log.config.limits.data_bytes_max
        old, new = (checked_text(text, "A side of a patch", limit) if text else "" for text in (before, after))
        named = language_for(path, language)
        if named is None:
            return Learned()
        if evidence is not None:
            self._require_entry(evidence)
        source = {"path": path, "commit": commit, "evidence": evidence, "task": self._task}
        outcomes = [self._learn(*piece, named, source) for piece in pieces(old, new, named)]
        parts = {
            name: tuple({rule.id: rule for one in outcomes for rule in getattr(one, name)}.values())
            for name in ("new", "confirmed", "contradicted")
        }
        return Learned(**parts, repeated=sum(one.repeated for one in outcomes))

    def _require_entry(self, event_id: str) -> None:
        entry = self._log.store.read(lambda reader: reader.event(event_id))
        if entry is None or entry.scope.key not in self._caller.visible_keys:
            raise NotFound(f"No entry {event_id!r} here.", hint="Give the whole id of an entry that this seat can see.")

    def _learn(self, before: str, after: str, language: str, source: dict[str, Any]) -> Learned:
        patch = {"before": before, "after": after, "digest": _digest(before, after)}
        secrets: set[str] = set()
        redacted_tree(patch, secrets)
        known = self.find_code_rules(language=language)
        events = self._events()
        is_repeated = any(_is_same(event.payload or {}, patch["digest"], source["path"]) for event in events)
        if secrets or is_repeated:
            return Learned(repeated=int(is_repeated))
        verdicts = {rule.id: _judged(rule, before, after, language) for rule in known}
        if "right" in verdicts.values():  # A known rule explains the change.
            return self._log.act(self._caller, lambda act: self._record(act, patch, source, verdicts, [], []))
        new = [rule for rule in detect_code_rules_from_patch(before, after, language) if may_recur(rule)]
        examples = {event.id: event.payload["patch"] for event in events if event.payload and "patch" in event.payload}
        others = [(rule.id, examples[rule.id]) for rule in known if rule.id in examples][:_EXAMPLES_MAX]
        texts = {rule_id: (each["before"], each["after"]) for rule_id, each in others}
        joint = joint_rules((before, after), texts, language)
        source = source | {"pattern": pattern_category(before, after, language)}
        return self._log.act(self._caller, lambda act: self._record(act, patch, source, verdicts, new, joint))

    def _record(
        self, act: Act, patch: dict[str, Any], source: dict[str, Any], verdicts: dict[str, str], new: list[CodeRule],
        joint: list[tuple[CodeRule, str]],
    ) -> Learned:  # fmt: skip
        rules = {row["id"]: _rule_of(row) for row in act.transaction.code_rules(self._project_id)}
        judged: dict[bool, list[CodeRule]] = {True: [], False: []}
        for rule_id, outcome in verdicts.items():
            if rule_id in rules and outcome != "silent":
                success = outcome != "wrong"
                rules[rule_id] = _earned(act, reinforce_rule(rules[rule_id], success), source["task"])
                self._judge(act, rules[rule_id], source | {"success": success, "digest": patch["digest"]})
                judged[success].append(rules[rule_id])
        known = set(map(_patterns, rules.values()))
        learned = []
        for rule, other in [*((rule, None) for rule in new), *joint]:
            if _patterns(rule) not in known:
                known.add(_patterns(rule))
                payload = source | {"rule": _row(rule), "digest": patch["digest"], "patch": patch, "with": other}
                event, _ = act.record(EventType.RULE_LEARNED, payload)
                learned.append(replace(rule, id=event.id, created_at=act.now, updated_at=act.now))
        return Learned(new=tuple(learned), confirmed=tuple(judged[True]), contradicted=tuple(judged[False]))

    def _judge(self, act: Act, rule: CodeRule, payload: dict[str, Any]) -> None:
        counts = {name: getattr(rule, name) for name in _COUNTED}
        act.record(EventType.RULE_JUDGED, payload | {"set": counts}, subject=rule.id)

    def _events(self) -> list[Event]:
        scope = self._caller.scope.at(Level.PROJECT)
        return self._log.store.read(lambda reader: list(reader.events_back(scope, types=_OF_RULES, limit=10_000)))

    # Looking up

    def find_code_rules(
        self, category: str | None = None, language: str | None = None, confidence: float = 0.0
    ) -> list[CodeRule]:
        """The project's rules, the most confident first, filtered by category, language and minimum confidence."""
        wanted = None if category is None else str(member_of(Category, category, "category"))
        rows = self._log.store.read(lambda reader: reader.code_rules(self._project_id))
        rules = [_rule_of(row) for row in rows if wanted in {None, row["category"]}]
        return [rule for rule in rules if language in {None, *rule.languages} and rule.confidence >= confidence]

    def get_code_rule(self, rule_id: str) -> CodeRule:
        """One rule, by its id or at least six characters of it."""
        rules = self.find_code_rules()
        named = [rule for rule in rules if rule.id == rule_id]
        if not named and len(rule_id) >= 6:
            named = [rule for rule in rules if rule.id.startswith(rule_id) or rule.id[24:].startswith(rule_id)]
        if len(named) != 1:
            what = f"{rule_id!r} may be {len(named)} rules" if named else f"No code rule {rule_id!r} here"
            raise NotFound(f"{what}.", hint="`mnemarch rules` lists them with their ids.")
        return named[0]

    def find_similar_rules(self, name: str, category: str) -> list[CodeRule]:
        """The rules of this category whose names contain more than half of the words of `name`."""
        words = set(name.lower().split())
        rules = self.find_code_rules(category)
        return [rule for rule in rules if len(words & set(rule.name.lower().split())) * 2 > len(words)]

    def explain(self, rule_id: str) -> RuleStory:
        """A rule with the patches that taught it and those that judged it."""
        rule = self.get_code_rule(rule_id)
        events = [event for event in self._events() if rule.id in {event.id, event.subject}]
        return RuleStory(rule=rule, events=tuple(reversed(events)))

    # Judging

    def update_code_rule_confidence(self, rule_id: str, success: bool, ema_alpha: float = EMA_ALPHA) -> CodeRule:
        """Record that a rule was right or wrong."""
        rule = self.get_code_rule(rule_id)

        def work(act: Act) -> CodeRule:
            act.require_at(Deed.VALIDATE, Level.PROJECT, f"judge code rule {rule.id}")
            now = next(_rule_of(row) for row in act.transaction.code_rules(self._project_id) if row["id"] == rule.id)
            judged = _earned(act, reinforce_rule(now, bool(success), ema_alpha), None)
            self._judge(act, judged, {"success": bool(success)})
            return judged

        return self._log.act(self._caller, work)

    def save_code_rule(self, rule: CodeRule) -> CodeRule:
        """Keep a hand-written rule; if one has the same patterns, that one is returned."""
        rule = _checked(rule)
        if form_of(rule.before_pattern, rule.after_pattern, rule.languages[0]) is None:
            raise InvalidInput(
                "The patterns of this rule don't parse, or the new one has a variable that the old one lacks.",
                hint="Write code of the language, with $A or $$$ARGS_1 as variables.",
            )
        same = [known for known in self.find_code_rules() if _patterns(known) == _patterns(rule)]
        if same:
            return same[0]

        def work(act: Act) -> CodeRule:
            act.require_at(Deed.WRITE, Level.PROJECT, "keep a code rule")
            event, _ = act.record(EventType.RULE_LEARNED, {"rule": _row(rule)})
            return replace(rule, id=event.id, project_id=self._project_id, created_at=act.now, updated_at=act.now)

        return self._log.act(self._caller, work)

    def cleanup_weak_rules(self, min_observations: int = 3) -> list[CodeRule]:
        """Drop the rules that failed too often, and return them."""
        rules = self.find_code_rules()
        stay = {rule.id for rule in cleanup_weak_rules(rules, min_observations)}
        weak = [rule for rule in rules if rule.id not in stay]

        def work(act: Act) -> list[CodeRule]:
            act.require_at(Deed.PRUNE, Level.PROJECT, "drop weak code rules")
            for rule in weak:
                act.record(EventType.RULE_DROPPED, {"reason": "weak"}, subject=rule.id)
            return weak

        return self._log.act(self._caller, work) if weak else []

    # Applying

    def check(self, source: str, path: str = "", *, candidates: bool = False) -> list[RuleHit]:
        """Where trusted rules apply in a text; with `candidates` also those that are not trusted yet."""
        language, rules = language_for(path), self._applicable(source, path, candidates)
        tree = parsed(source, language) if rules and language else None
        hits = hits_in(rules, tree, is_file=True) if tree is not None else ()
        at = [(hit, source.count("\n", 0, hit.start) + 1) for hit in hits]
        return [RuleHit(rule=hit.rule, line=n, before=source[hit.start : hit.end], after=hit.text) for hit, n in at]

    def rewritten(self, source: str, path: str = "", *, candidates: bool = False) -> str:
        """A text with trusted rules applied; unchanged where none applies."""
        language, rules = language_for(path), self._applicable(source, path, candidates)
        return apply_rules(rules, source, language, is_file=True) if rules and language else source

    def _applicable(self, source: str, path: str, candidates: bool) -> list[CodeRule]:
        """The rules to apply. None if no rule's words are in the text, which saves parsing it."""
        language, allowed = language_for(path), {"trusted", "candidate"} if candidates else {"trusted"}
        rules = [rule for rule in self.find_code_rules(language=language) if rule.status in allowed] if language else []
        return rules if any(_has_words_of(rule, str(language), source) for rule in rules) else []


def _has_words_of(rule: CodeRule, language: str, *texts: str) -> bool:
    form = form_of(rule.before_pattern, rule.after_pattern, language)
    return form is not None and any(all(word in text for word in form.words) for text in texts)


def _judged(rule: CodeRule, before: str, after: str, language: str) -> str:
    """The verdict of a patch on a known rule. A rule that would change the new code is wrong."""
    if not _has_words_of(rule, language, before, after):
        return "silent"
    return "wrong" if rule.apply(after) != after else verdict([rule], before, after, language)


def _is_same(payload: dict[str, Any], digest: str, path: str) -> bool:
    """Whether an event is about the same change in the same file; an unnamed file matches any."""
    known = payload.get("path") or ""
    return payload.get("digest") == digest and (not path or not known or path == known)


def _digest(before: str, after: str) -> str:
    return blake2b(f"{before}\0{after}".encode(), digest_size=16).hexdigest()


def _row(rule: CodeRule) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in _STORED.split()} | {"languages": list(rule.languages)}


def _rule_of(row: dict[str, Any]) -> CodeRule:
    instants = {name: instant(row[name]) for name in ("created_at", "updated_at")}
    return CodeRule(**row | instants | {"languages": tuple(json.loads(row["languages"]))})
