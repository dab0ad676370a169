"""The run as one picture: for each set, recall@10 of each variant with its 95 % interval, and the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.retrieval.limits import SESSIONS, TARGETS, TURNS
from bench.retrieval.variants import BASELINES, DEFAULT, FLOOR, NAMES

_GREY, _LIGHT, _BLUE, _RED = "#9a9a9a", "#9ec3e0", "#1f6fb2", "#c0392b"


def drawn(results: Mapping[str, Mapping[str, Any]], path: str) -> bool:
    """Draw what was measured; False where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = [
        (name, measure, {variant: rows[variant] for variant in NAMES if measure in rows.get(variant, ())})
        for name, rows in results.items()
        for measure in (TURNS, SESSIONS)
        if measure == TURNS or (name, measure) in TARGETS
    ]
    panels = [panel for panel in panels if panel[2]]
    if not panels:
        return True
    names = [variant for variant in NAMES if any(variant in rows for _, _, rows in panels)]
    height = 1.6 + 0.3 * len(names)
    figure, axes = pyplot.subplots(1, len(panels), figsize=(3.6 * len(panels) + 1, height), sharey=True, squeeze=False)
    for axis, (name, measure, rows) in zip(axes[0], panels, strict=True):
        axis.set_title(f"{name}\n{measure}", fontsize=10)
        target = TARGETS.get((name, measure))
        if target is not None:
            axis.axvline(target, color=_RED, linewidth=1.2)
            axis.text(
                target, len(names) - 0.3, f"target {target:.2f} ", color=_RED, fontsize=8, ha="right", va="center"
            )
        _draw(axis, names, measure, rows)
    axes[0][0].set_yticks(range(len(names)), names)
    axes[0][0].set_ylim(len(names) - 0.05, -0.6)
    figure.suptitle("Recall at 10 with its 95 % interval over questions", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True


def _draw(axis: Any, names: list[str], measure: str, rows: Mapping[str, Any]) -> None:
    for place, variant in enumerate(names):
        if variant not in rows:
            continue
        value = rows[variant][measure]
        low, high = rows[variant][f"{measure} interval"]
        color = _GREY if variant in (*BASELINES, FLOOR) else _BLUE if variant == DEFAULT else _LIGHT
        axis.barh(place, value, color=color, height=0.72)
        axis.errorbar(value, place, xerr=[[value - low], [high - value]], color="black", linewidth=1, capsize=2)
        axis.text(1.02, place, f"{value:.3f}", fontsize=8, va="center", weight="bold" if variant == DEFAULT else None)
    axis.set_xlim(0.0, 1.0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=9)
