-- head: The end of one stream.
SELECT id, seq, hash FROM streams WHERE org = :org AND project IS :project;

-- heads: The ends of all streams.
SELECT org, project, seq, hash FROM streams;

-- new_stream: The first event of a stream.
INSERT INTO streams (org, project, seq, hash) VALUES (?, ?, ?, ?) RETURNING id;

-- move_head: One more event in a stream.
UPDATE streams SET seq = ?, hash = ? WHERE id = ?;

-- position: The newest event of all.
SELECT ifnull(max(position), 0) FROM events;

-- append: One event.
INSERT INTO events (stream, seq, id, type, actor, scope, scope_key, session, subject, key, occurred_at, recorded_at, body, salt, payload_hash, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- erase_payload: The one true deletion; the hashes stay.
UPDATE events SET body = NULL, salt = NULL WHERE id = :id;

-- event: One event by its id.
SELECT e.*, s.org, s.project FROM events e JOIN streams s ON s.id = e.stream WHERE e.id = :id;

-- event_for_key: What an idempotency key stood for.
SELECT e.*, s.org, s.project FROM events e JOIN streams s ON s.id = e.stream
WHERE e.scope_key = :scope_key AND e.actor = :actor AND e.key = :key;

-- events: The whole log in commit order; an event whose stream is gone is not readable, rather than passed over.
SELECT e.*, s.org, s.project FROM events e LEFT JOIN streams s ON s.id = e.stream
WHERE e.position > :after ORDER BY e.position LIMIT :limit;

-- events_of_scope: What was recorded from exactly one scope.
SELECT e.*, s.org, s.project FROM events e JOIN streams s ON s.id = e.stream
WHERE e.scope_key = :scope_key ORDER BY e.position;

-- events_of_subject: The life of one unit or ledger; its newest events, if there are more than were asked for.
SELECT * FROM (
  SELECT e.*, s.org, s.project FROM events e JOIN streams s ON s.id = e.stream
  WHERE e.subject = :subject AND e.position > :after ORDER BY e.position DESC LIMIT :last
) ORDER BY position;

-- events_containing: Where a text stands in the log. A scan, for erasure only.
SELECT e.*, s.org, s.project FROM events e JOIN streams s ON s.id = e.stream
WHERE e.body IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(:needles) n WHERE instr(e.body, n.value) > 0)
ORDER BY e.position;

-- unit: One unit.
SELECT id, body FROM units WHERE id = :id;

-- units: Some units.
SELECT id, body FROM units WHERE id IN (:names);

-- units_in: A page of one scope, newest first.
SELECT id, body FROM units
WHERE scope_key = :scope_key
  AND (:kind IS NULL OR kind = :kind)
  AND (:status IS NULL OR status = :status)
  AND (:level IS NULL OR level = :level)
  AND (:domain IS NULL OR domain = :domain)
  AND (:live IS NULL OR live = :live)
  AND id < :before
ORDER BY id DESC LIMIT :limit;

-- live_units_in: The same of what is live: what was replaced or archived is not even looked at (D7).
SELECT id, body FROM units
WHERE live AND scope_key = :scope_key
  AND (:kind IS NULL OR kind = :kind)
  AND (:status IS NULL OR status = :status)
  AND (:level IS NULL OR level = :level)
  AND (:domain IS NULL OR domain = :domain)
  AND id < :before
ORDER BY id DESC LIMIT :limit;

-- guides_in: The same of the live policies or anchors, which are few among many and asked for each time.
SELECT id, body FROM units
WHERE live AND kind IN ('policy', 'anchor') AND kind = :kind AND scope_key = :scope_key
  AND (:status IS NULL OR status = :status)
  AND (:level IS NULL OR level = :level)
  AND (:domain IS NULL OR domain = :domain)
  AND id < :before
ORDER BY id DESC LIMIT :limit;

-- replaced_in: What a commit replaced in one scope, newest first.
SELECT id, body FROM units
WHERE scope_key = :scope_key AND status = 'deprecated' AND root IS NULL AND json_extract(body, '$.valid_to_commit') IS NOT NULL
  AND (:kind IS NULL OR kind = :kind)
  AND (:domain IS NULL OR domain = :domain)
ORDER BY id DESC LIMIT :limit;

-- units_with_text: The units that say exactly this.
SELECT id, body FROM units
WHERE live AND canonical_key = :canonical_key AND scope_key IN (SELECT value FROM json_each(:scope_keys))
ORDER BY id;

-- units_gone_with_text: The units that said exactly this and were rejected, replaced or archived.
SELECT id, body FROM units
WHERE NOT live AND canonical_key = :canonical_key AND scope_key IN (SELECT value FROM json_each(:scope_keys))
ORDER BY id;

-- units_with_skeleton: The units that say this but for numbers, names and negations.
SELECT id, body FROM units
WHERE live AND skeleton_key = :skeleton_key AND scope_key IN (SELECT value FROM json_each(:scope_keys))
ORDER BY id DESC LIMIT :limit;

-- units_citing: The units that rest on one thing; first those that cite it, since a scope has many more.
SELECT u.id, u.body FROM citations c CROSS JOIN units u ON u.id = c.unit_id
WHERE c.kind = :kind AND c.ref = :ref AND u.scope_key IN (SELECT value FROM json_each(:scope_keys))
ORDER BY c.unit_id;

-- units_citing_code: A page of the units that rest on files or symbols, everywhere, for the janitor; unit by unit, so that no page costs them all.
SELECT u.id, u.body FROM units u
WHERE u.id > :after AND EXISTS (SELECT 1 FROM citations c WHERE c.unit_id = u.id AND c.kind IN ('file', 'symbol'))
ORDER BY u.id LIMIT :limit;

-- units_of_kinds: Live units of some kinds, everywhere, for the operator.
SELECT id, body FROM units WHERE live AND kind IN (SELECT value FROM json_each(:kinds)) ORDER BY id;

-- ageing_units: The same of episodes and skills, which are few among many.
SELECT id, body FROM units
WHERE live AND kind IN ('episode', 'skill') AND kind IN (SELECT value FROM json_each(:kinds)) ORDER BY id;

-- searchable_after: What an index has still to learn: a page, with all that changed at its last position.
SELECT id, scope_key, status, kind, domain, session, turn, body, searchable_at FROM units
WHERE searchable_at > :position AND searchable_at <= (
  SELECT max(searchable_at) FROM (
    SELECT searchable_at FROM units WHERE searchable_at > :position ORDER BY searchable_at LIMIT :limit))
ORDER BY searchable_at, id;

-- searchable_count_after: How much that is.
SELECT count(*) FROM units WHERE searchable_at > :position;

-- put_unit: A unit's newest state. Its turn in its session is given once; the change of position is kept unless search must see it.
INSERT INTO units (id, scope_key, level, kind, domain, status, live, canonical_key, skeleton_key, searchable_at, body, root, place, strength,
  session, turn)
VALUES (:id, :scope_key, :level, :kind, :domain, :status, :live, :canonical_key, :skeleton_key, ifnull(:searchable_at, 0), :body, :root, :place,
  :strength, :session, iif(:session IS NULL, 0, (SELECT ifnull(max(turn), 0) + 1 FROM units WHERE session = :session)))
ON CONFLICT (id) DO UPDATE SET
  root = excluded.root, place = excluded.place, strength = excluded.strength,
  scope_key = excluded.scope_key, level = excluded.level, kind = excluded.kind, domain = excluded.domain,
  status = excluded.status, live = excluded.live, canonical_key = excluded.canonical_key,
  skeleton_key = excluded.skeleton_key, searchable_at = ifnull(:searchable_at, units.searchable_at), body = excluded.body;

-- put_citation: One citation of a unit.
INSERT OR IGNORE INTO citations (kind, ref, unit_id) VALUES (:kind, :ref, :unit_id);

-- drop_citations: A unit's citations, before they are written anew.
DELETE FROM citations WHERE unit_id = :unit_id;

-- put_link: A link's newest state.
INSERT INTO links (id, type, source, target, open, body) VALUES (:id, :type, :source, :target, :open, :body)
ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body;

-- drop_link: A link of an erased unit.
DELETE FROM links WHERE id = :id;

-- link: One link.
SELECT id, body FROM links WHERE id = :id;

-- links_of: What a unit is related to.
SELECT id, body FROM links WHERE source = :unit_id OR target = :unit_id ORDER BY id;

-- open_links: What somebody still has to decide, if both sides can be seen.
SELECT l.id, l.body FROM links l
JOIN units a ON a.id = l.source AND a.live AND a.scope_key IN (SELECT value FROM json_each(:scope_keys))
JOIN units b ON b.id = l.target AND b.live AND b.scope_key IN (SELECT value FROM json_each(:scope_keys))
WHERE l.open AND l.type = :type ORDER BY l.id;

-- in_force: The version of a decision that holds.
SELECT id, body FROM units WHERE root = :root AND live;

-- versions: Every version of a decision; only for who asks for its history (D7).
SELECT id, body FROM units WHERE root = :root ORDER BY place;

-- decided: A page of what is in force in one scope and domain with one strength.
SELECT id, body FROM units
WHERE live AND root IS NOT NULL AND scope_key = :scope_key AND domain = :domain AND strength = :strength AND id > :after
ORDER BY id LIMIT :limit;

-- domains_decided: The domains of what is in force in one scope, each by one look into the index.
WITH RECURSIVE known (domain) AS (
  SELECT min(domain) FROM units WHERE live AND root IS NOT NULL AND scope_key = :scope_key
  UNION ALL
  SELECT (SELECT min(domain) FROM units WHERE live AND root IS NOT NULL AND scope_key = :scope_key AND domain > known.domain)
  FROM known WHERE known.domain IS NOT NULL)
SELECT domain FROM known WHERE domain IS NOT NULL;

-- related: What is in force and stands in a relation to a decision, whichever way, the firmest first.
SELECT id, body FROM units
WHERE live AND scope_key IN (SELECT value FROM json_each(:scope_keys)) AND root IN (
  SELECT target FROM relations WHERE source = :root UNION SELECT source FROM relations WHERE target = :root)
ORDER BY strength DESC, root LIMIT :limit;

-- anchored: What the anchors of some domains lead to: the firmest decisions first, then evidence. Bodies are read last.
SELECT id, body, strength FROM units WHERE id IN (
  SELECT t.id FROM units a CROSS JOIN units t ON t.id = json_extract(a.body, '$.attributes.target')
  WHERE a.live AND a.kind IN ('policy', 'anchor') AND a.kind = 'anchor'
    AND a.scope_key IN (SELECT value FROM json_each(:scope_keys)) AND a.domain IN (:names)
    AND t.live AND (t.root IS NOT NULL OR t.kind = 'evidence') AND t.scope_key IN (SELECT value FROM json_each(:scope_keys)))
ORDER BY strength DESC, id LIMIT :limit;

-- put_relation: One decision's relation to another, by the event that said it last.
INSERT INTO relations (source, type, target, id) VALUES (:source, :type, :target, :id)
ON CONFLICT (source, type, target) DO UPDATE SET id = excluded.id;

-- drop_relation: It no longer holds.
DELETE FROM relations WHERE source = :source AND type = :type AND target = :target;

-- relations_from: Where relations lead that begin at some decisions.
SELECT source, type, target, id FROM relations WHERE source IN (:names) ORDER BY source, type, target;

-- relations_to: Where relations come from that end at some decisions.
SELECT source, type, target, id FROM relations WHERE target IN (:names) ORDER BY target, type, source;

-- put_test: The last outcome of a test.
INSERT INTO tests (org, project, name, passed, at, event_id) VALUES (:org, :project, :name, :passed, :at, :event_id)
ON CONFLICT (org, project, name) DO UPDATE
SET passed = excluded.passed, at = excluded.at, event_id = excluded.event_id;

-- drop_test: What an erased verification said.
DELETE FROM tests WHERE event_id = :event_id;

-- test_passed: Whether a test passed when it was last recorded.
SELECT passed FROM tests WHERE org = :org AND project = :project AND name = :name;

-- put_use: What a task did with a unit; a flag once set stays set.
INSERT INTO uses (unit_id, task_key, handed, used, credited, blamed)
VALUES (:unit_id, :task_key, :handed, :used, :credited, :blamed)
ON CONFLICT (unit_id, task_key) DO UPDATE SET
  handed = handed OR excluded.handed, used = used OR excluded.used,
  credited = credited OR excluded.credited, blamed = blamed OR excluded.blamed;

-- drop_uses: The uses of an erased unit.
DELETE FROM uses WHERE unit_id = :unit_id;

-- use: What one task did with one unit.
SELECT * FROM uses WHERE unit_id = :unit_id AND task_key = :task_key;

-- noted_uses: Of some units, those that a task has met.
SELECT unit_id FROM uses WHERE unit_id IN (:names) AND task_key = :task_key;

-- uses_of_task: What a task relied on.
SELECT * FROM uses WHERE task_key = :task_key ORDER BY unit_id;

-- uses_of_unit: Who relied on a unit.
SELECT * FROM uses WHERE unit_id = :unit_id ORDER BY task_key;

-- counts: What there is, by one property at a time.
SELECT 'status' AS property, status AS name, count(*) FROM units GROUP BY status
UNION ALL SELECT 'kind', kind, count(*) FROM units GROUP BY kind
UNION ALL SELECT 'level', CAST(level AS TEXT), count(*) FROM units GROUP BY level
UNION ALL SELECT 'total', 'events', count(*) FROM events
UNION ALL SELECT 'total', 'streams', count(*) FROM streams
UNION ALL SELECT 'total', 'open_conflicts', count(*) FROM links WHERE open AND type = 'contradicts';

-- row_units: Every unit, for the digest.
SELECT body FROM units ORDER BY id;

-- row_links: Every link, for the digest.
SELECT body FROM links ORDER BY id;

-- row_relations: Every relation, for the digest.
SELECT source, type, target, id FROM relations ORDER BY source, type, target;

-- row_tests: Every test outcome, for the digest.
SELECT org, project, name, passed, at, event_id FROM tests ORDER BY org, project, name;

-- row_uses: Every use, for the digest.
SELECT unit_id, task_key, handed, used, credited, blamed FROM uses ORDER BY unit_id, task_key;
