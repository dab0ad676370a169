"""The projections of a store in plain dictionaries: the oracle that the answers of every store are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from mnemarch import Kind, Level, Status, Unit
from mnemarch.log.audit import Replay, StoredUnit
from mnemarch.model.caller import Stream
from mnemarch.model.citation import OF_CODE
from mnemarch.model.decision import Relation, VersionKey
from mnemarch.model.unit import Link, LinkType, Use

_SURENESS = (Status.VERIFIED, Status.PUBLISHED, Status.HYPOTHESIS)


class Change(NamedTuple):
    """What the model says of a change that search has to learn."""

    id: str
    changed_at: int


class Model(Replay):
    """The projections as the audit replays them, and what `Reader` reads of them, by the same names."""

    # Units

    def _sorted(self, scope_keys: Iterable[str] | None = None, *, live: bool | None = None) -> list[StoredUnit]:
        """Units by id: of these scopes, and live or not."""
        return [
            one
            for _, one in sorted(self.stored.items())
            if (scope_keys is None or one.unit.scope.key in scope_keys) and live in (None, one.unit.live)
        ]

    def units(self, unit_ids: Iterable[str]) -> dict[str, Unit]:
        return {id: self.stored[id].unit for id in unit_ids if id in self.stored}

    def units_in(
        self,
        scope_keys: Sequence[str],
        *,
        kind: Kind | None = None,
        status: Status | None = None,
        level: Level | None = None,
        domain: str | None = None,
        live: bool | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[Unit]:
        units = [
            one.unit for one in reversed(self._sorted(scope_keys, live=live)) if not before or one.unit.id < before
        ]
        wanted = kind, status, level, domain
        return [
            unit
            for unit in units
            if all(
                want in (None, has)
                for want, has in zip(wanted, (unit.kind, unit.status, unit.level, unit.domain), strict=True)
            )
        ][:limit]

    def units_replaced(
        self, scope_keys: Sequence[str], *, kind: Kind | None, domain: str | None, limit: int
    ) -> list[Unit]:
        units = self.units_in(scope_keys, kind=kind, domain=domain, status=Status.DEPRECATED, limit=10_000)
        return [unit for unit in units if unit.valid_to_commit and self.stored[unit.id].version is None][:limit]

    def units_with_text(self, scope_keys: Sequence[str], canonical_key: str) -> list[Unit]:
        return [one.unit for one in self._sorted(scope_keys) if one.text_key == canonical_key]

    def units_saying(self, stream: Stream, canonical_key: str) -> list[Unit]:
        return _of_stream(stream, (one.unit for one in self._sorted() if one.text_key == canonical_key))

    def rejected_of_topic(self, stream: Stream, topic_key: str, limit: int) -> list[Unit]:
        archived = [
            one.unit for one in reversed(self._sorted()) if (one.topic_key, one.unit.status) == (topic_key, "archived")
        ]
        rejected = [unit for unit in archived if (unit.archive_reason or "").startswith("rejected: ")]
        return _of_stream(stream, rejected[:limit])

    def units_of_topic(self, scope_keys: Sequence[str], topic_key: str, limit: int) -> list[Unit]:
        live = [one.unit for one in reversed(self._sorted(scope_keys, live=True)) if one.topic_key == topic_key]
        return sorted(live, key=lambda unit: _SURENESS.index(unit.status))[:limit]

    def units_citing(
        self, scope_keys: Sequence[str], kind: str, refs: Sequence[str], *, live_but: Iterable[Kind] | None = None
    ) -> list[Unit]:
        units = [one.unit for one in self._sorted(scope_keys)]
        if live_but is not None:
            units = [unit for unit in units if unit.live and unit.kind not in live_but]
        return [unit for unit in units if any(cited.kind == kind and cited.ref in refs for cited in unit.citations)]

    def tests_cited(self, scope_keys: Sequence[str]) -> list[str]:
        units = [one.unit for one in self._sorted(scope_keys, live=True)]
        return sorted({cited.ref for unit in units for cited in unit.citations if cited.kind == "test"})

    def newest_citing(
        self, scope_keys: Sequence[str], kind: str, ref: str, limit: int, live: bool = False
    ) -> list[Unit]:
        units = self.units_citing(scope_keys, kind, [ref], live_but=() if live else None)
        return units[::-1][:limit]

    def units_citing_code(self, after: str, limit: int) -> list[Unit]:
        units = [one.unit for one in self._sorted() if one.unit.id > after]
        return [unit for unit in units if any(cited.kind in ("file", "symbol") for cited in unit.citations)][:limit]

    def units_of_kinds(self, kinds: Sequence[Kind]) -> Iterator[Unit]:
        return (one.unit for one in self._sorted(live=True) if one.unit.kind in kinds)

    def searchable_after(self, position: int, limit: int) -> list[Change]:
        changes = [Change(one.unit.id, one.searchable_at) for one in self._sorted() if one.searchable_at > position]
        changes.sort(key=lambda change: change.changed_at)
        return [change for change in changes if change.changed_at <= max(one.changed_at for one in changes[:limit])]

    def searchable_count_after(self, position: int) -> int:
        return sum(one.searchable_at > position for one in self.stored.values())

    # Links, tests, uses

    def links_of(self, unit_id: str) -> list[Link]:
        return [link for id, link in sorted(self._links.items()) if (id, unit_id) in self._members]

    def units_of_link(self, link_id: str) -> list[str]:
        return sorted(unit_id for id, unit_id in self._members if id == link_id)

    def _is_live_in(self, unit_id: str, scope_keys: Sequence[str]) -> bool:
        unit = self.unit(unit_id)
        return unit is not None and unit.live and unit.scope.key in scope_keys

    def open_links(self, scope_keys: Sequence[str], type: LinkType) -> list[tuple[Link, list[str]]]:
        links = [link for _, link in sorted(self._links.items()) if link.open and link.type == type]
        sides = [[id for id in self.units_of_link(link.id) if self._is_live_in(id, scope_keys)] for link in links]
        return [(link, units) for link, units in zip(links, sides, strict=True) if len(units) > 1]

    def open_conflicts(self, unit_ids: Sequence[str]) -> list[Link]:
        links = [link for _, link in sorted(self._links.items()) if link.open and link.type == LinkType.CONTRADICTS]
        return [link for link in links if not set(self.units_of_link(link.id)).isdisjoint(unit_ids)]

    def contested(self, unit_ids: Sequence[str], scope_keys: Sequence[str]) -> set[str]:
        contested = set()
        for link in self.open_conflicts(unit_ids):
            members = self.units_of_link(link.id)
            for id in members:
                others = [other for other in members if other != id]
                if id in unit_ids and any(self._is_live_in(other, scope_keys) for other in others):
                    contested.add(id)
        return contested

    def use(self, unit_id: str, task_key: str) -> Use | None:
        return self._uses.get((unit_id, task_key))

    def noted_uses(self, unit_ids: Sequence[str], task_key: str) -> set[str]:
        return {unit for unit, task in self._uses if unit in unit_ids and task == task_key}

    def used_in_task(self, task_key: str) -> list[str]:
        return sorted(use.unit_id for use in self._uses.values() if use.task_key == task_key and use.used)

    def uses_of_task(self, task_key: str) -> list[Use]:
        return [use for (_, task), use in sorted(self._uses.items(), key=lambda one: one[0]) if task == task_key]

    def code_met(self, task_key: str) -> list[tuple[str, str]]:
        uses = [use for use in self.uses_of_task(task_key) if not use.credited]
        cited = {use.unit_id: unit.citations for use in uses if (unit := self.unit(use.unit_id)) is not None}
        return sorted((id, item.ref) for id, items in cited.items() for item in items if item.kind in OF_CODE)

    def uses_of_unit(self, unit_id: str) -> list[Use]:
        return [use for (unit, _), use in sorted(self._uses.items(), key=lambda one: one[0]) if unit == unit_id]

    def code_rules(self, project_id: str) -> list[dict[str, Any]]:
        rules = [rule for _, rule in sorted(self._code_rules.items()) if rule["project_id"] == project_id]
        return sorted(rules, key=lambda rule: -rule["confidence"])

    # Decisions

    def _versions(self, *, live: bool | None = None) -> list[tuple[Unit, VersionKey]]:
        return [(one.unit, one.version) for one in self._sorted(live=live) if one.version is not None]

    def decision_in_force(self, root: str) -> Unit | None:
        return next((unit for unit, version in self._versions(live=True) if version.root == root), None)

    def decision_versions(self, root: str) -> list[Unit]:
        versions = [(version.number, unit) for unit, version in self._versions() if version.root == root]
        return [unit for _, unit in sorted(versions, key=lambda one: one[0])]

    def decided(self, scope_key: str, domain: str, strength: int, *, after: str, limit: int) -> list[Unit]:
        wanted = scope_key, domain, strength
        versions = [(unit, version) for unit, version in self._versions(live=True) if unit.id > after]
        return [unit for unit, version in versions if (unit.scope.key, unit.domain, version.strength) == wanted][:limit]

    def firm(self, scope_keys: Sequence[str], domains: Sequence[str]) -> list[Unit]:
        ranks = {3: 0, 2: 1}
        decided = [one for one in self._sorted(scope_keys, live=True) if one.version is not None]
        firm = [one for one in decided if one.version and one.version.strength in ranks and one.unit.domain in domains]
        return [one.unit for one in sorted(firm, key=lambda one: ranks[one.version.strength if one.version else 3])]

    def normal_count(self, scope_keys: Sequence[str], domains: Sequence[str], limit: int) -> int:
        decided = [one for one in self._sorted(scope_keys, live=True) if one.version and one.version.strength == 1]
        return min(limit, sum(one.unit.domain in domains for one in decided))

    def domains_decided(self, scope_key: str) -> list[str]:
        return sorted({unit.domain for unit, _ in self._versions(live=True) if unit.scope.key == scope_key})

    def related(self, root: str, scope_keys: Sequence[str], *, limit: int) -> list[Unit]:
        ends = [(source, target) for source, _, target in self._relations if root in (source, target)]
        roots = {target if source == root else source for source, target in ends}
        found = [one for one in self._versions(live=True) if one[1].root in roots and one[0].scope.key in scope_keys]
        return [unit for unit, _ in sorted(found, key=lambda one: (-one[1].strength, one[1].root))][:limit]

    def anchored(self, scope_keys: Sequence[str], domains: Sequence[str], *, limit: int) -> list[Unit]:
        anchors = [one.unit for one in self._sorted(scope_keys, live=True) if one.unit.kind == Kind.ANCHOR]
        targets = {unit.attributes.get("target") for unit in anchors if unit.domain in domains}
        found = [
            (-one.version.strength if one.version else 0, one.unit.id, one.unit)
            for one in self._sorted(scope_keys, live=True)
            if one.unit.id in targets and (one.version is not None or one.unit.kind == Kind.EVIDENCE)
        ]
        return [unit for _, _, unit in sorted(found, key=lambda one: one[:2])][:limit]

    def relations_from(self, roots: Sequence[str]) -> list[Relation]:
        return [relation for (source, _, _), relation in sorted(self._relations.items(), key=_key) if source in roots]

    def relations_to(self, roots: Sequence[str]) -> list[Relation]:
        ordered = sorted(self._relations.items(), key=lambda one: one[0][::-1])
        return [relation for (_, _, target), relation in ordered if target in roots]

    # All of it

    def counts(self) -> dict[str, dict[str, int]]:
        units = [one.unit for one in self.stored.values()]
        return {
            "status": dict(Counter(str(unit.status) for unit in units)),
            "kind": dict(Counter(str(unit.kind) for unit in units)),
            "level": dict(Counter(str(int(unit.level)) for unit in units)),
        }


def _key(item: tuple[Any, Any]) -> Any:
    return item[0]


def _of_stream(stream: Stream, units: Iterable[Unit]) -> list[Unit]:
    wanted = (stream.project, None)
    return [unit for unit in units if unit.scope.org == stream.org and unit.scope.project in wanted]
