"""The verbs of `seat.decisions`."""

from __future__ import annotations

from mnemarch.verbs.path import KEY, LEVELS
from mnemarch.verbs.types import (
    ANCHOR_KIND,
    EXAMPLE_ID,
    ID,
    LEVEL,
    NUMBER,
    OBJECT,
    OTHER_ID,
    PYTHON,
    RELATION,
    STRENGTH,
    TEXT,
    WORDS,
    Parameter,
    Verb,
)

_DECISION = Parameter("decision_id", ID, "of any version of the decision")
_DOMAIN = Parameter("domain", WORDS, "what it is about (default: global)", "global", metavar="NAME")
_LEVEL = Parameter("level", LEVEL, f"{LEVELS} (default: as narrow as may be)", None)
_OVERRIDE = Parameter("override", WORDS, "why, although the guardian blocks it", None, metavar="WHY")
_RELATED = (
    Parameter("source_id", ID, "the decision"),
    Parameter("relation", RELATION, "DEPENDS_ON, CONSTRAINS, VALIDATES, SUPERSEDES or REFINES"),
    Parameter("target_id", ID, "the other decision"),
)
_PROPOSAL = Parameter("proposal", PYTHON, "what `propose` gave")

DECISIONS = (
    Verb(
        "decisions.active",
        (
            _DOMAIN,
            "*",
            Parameter("limit", NUMBER, "how many at most (default: 50)", 50),
            Parameter("after", ID, "the last id of the page before", None),
        ),
        "list[Decision]",
        "read",
        says="List the decisions in force, the firmest first.",
        examples=("mnemarch decisions --domain coding",),
        command="decisions list",
    ),
    Verb(
        "decisions.get",
        (_DECISION,),
        "Decision",
        "read",
        says="Show one version of a decision, with its reason.",
        command="decisions show",
    ),
    Verb(
        "decisions.history",
        (_DECISION,),
        "list[Decision]",
        "read",
        says="List every version of a decision, oldest first.",
        command="decisions history",
    ),
    Verb(
        "decisions.load",
        (
            Parameter("domain", WORDS, "what the work is about", None, metavar="NAME"),
            Parameter("phase", WORDS, "the stage of the work; it changes nothing (D17: phases filter no memory)", None),
            "*",
            Parameter("around", ID, "the decision that is being worked on", None),
            Parameter("limit", NUMBER, "how many at most (default: 200)", 200),
        ),
        "list[Loaded]",
        "read",
        says="Load what to know first in a domain, in order.",
        examples=("mnemarch decisions load --domain coding",),
        command="decisions load",
    ),
    Verb(
        "decisions.relate",
        _RELATED,
        says="Relate two decisions.",
        examples=(f"mnemarch decisions relate {EXAMPLE_ID} DEPENDS_ON {OTHER_ID} --actor human:ada",),
        command="decisions relate",
    ),
    Verb(
        "decisions.unrelate",
        (*_RELATED, "*", _OVERRIDE),
        says="Take a relation back.",
        examples=(f"mnemarch decisions relate {EXAMPLE_ID} DEPENDS_ON {OTHER_ID} --drop --actor human:ada",),
        command="decisions relate --drop",
    ),
    Verb(
        "decisions.relations",
        (_DECISION,),
        "list[Relation]",
        "read",
        says="List the relations of a decision.",
        command="decisions relations",
    ),
    Verb(
        "decisions.add_evidence",
        (
            Parameter("content", TEXT, "word for word; - reads standard input"),
            Parameter("tags", WORDS, "a tag; repeatable", (), "--tag", many=True),
            "*",
            _LEVEL,
        ),
        "Unit",
        says="Keep a snapshot, word for word, that decisions can rest on.",
        examples=('mnemarch decisions evidence "Incident 7: the queue was full" --tag incident',),
        command="decisions evidence",
    ),
    Verb(
        "decisions.add_anchor",
        (
            Parameter("hint", WORDS, "what somebody would look for", metavar="HINT"),
            Parameter("target_id", ID, "the decision or evidence it leads to", metavar="TARGET"),
            Parameter("kind", ANCHOR_KIND, "runbook, entrypoint, wiring, config, invariant or gotcha"),
            "*",
            _DOMAIN,
            _LEVEL,
        ),
        "Unit",
        says="Leave a hint that leads to a decision or an evidence.",
        examples=(f'mnemarch decisions anchor "where is the gateway wired?" {EXAMPLE_ID} wiring --actor human:ada',),
        command="decisions anchor",
    ),
    Verb(
        "decisions.broken_anchors",
        (Parameter("limit", NUMBER, "how many at most (default: 200)", 200),),
        "list[Unit]",
        "read",
        says="List the anchors that lead nowhere.",
        command="decisions broken",
    ),
    Verb(
        "decisions.impact",
        (
            _DECISION,
            "*",
            Parameter("depth", NUMBER, "so many steps at most", None),
            Parameter("nodes", NUMBER, "so many decisions at most", None),
        ),
        "Impact",
        "read",
        says="Show what changing a decision would reach. Only the relations that were stated count.",
        examples=(
            f"mnemarch impact {EXAMPLE_ID}",
            f"mnemarch impact {EXAMPLE_ID} --format mermaid",
            f"mnemarch impact {EXAMPLE_ID} --depth 2 --json",
        ),
        command="impact",
    ),
    Verb(
        "decisions.propose",
        (
            Parameter("text", TEXT, "what is decided"),
            "*",
            Parameter("reason", OBJECT, "why: {type, summary, tradeoff?}", None),
            Parameter("evidence", ID, "what it rests on", (), many=True),
            Parameter("snapshots", WORDS, "new evidence, word for word", (), many=True),
            Parameter("strength", STRENGTH, "axis, lock or normal", None),
            Parameter("domain", WORDS, "what it is about", None),
            Parameter("level", LEVEL, LEVELS, None),
            Parameter("revises", ID, "the version that this is to follow", None),
            KEY,
        ),
        "DecisionProposal",
        says="Propose a decision and see what it would reach. Nothing is stored.",
        command=None,
    ),
    Verb("decisions.check", (_PROPOSAL,), profile="", says="Refuse who may not commit it.", command=None),
    Verb("decisions.commit", (_PROPOSAL, "*", _OVERRIDE), "Decision", says="Commit a proposal.", command=None),
    Verb("decisions.domains", (), "list[str]", "read", "List the domains in which something is decided.", command=None),
    Verb("decisions.in_force", (_DECISION,), "Decision", "read", "Give the version that is in force.", command=None),
)
