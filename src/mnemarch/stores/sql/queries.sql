Every query of the typed reads and writes, in SQL that SQLite and PostgreSQL share. Lists are bound as `IN (:names)`.
`coalesce(u.scope_key, '')` keeps a planner without statistics from beginning with a scope, which has many more rows.

-- head: The end of one stream.
SELECT id, seq, hash FROM streams WHERE org = :org AND project = :project AND writer = :writer;

-- heads: The ends of all streams.
SELECT org, project, seq, hash, writer FROM streams WHERE seq > 0;

-- new_stream: Begin a stream.
INSERT INTO streams (org, project, writer, seq, hash) VALUES (:org, :project, :writer, :seq, :hash) RETURNING id;

-- move_head: Move the end of a stream by one event.
UPDATE streams SET seq = :seq, hash = :hash WHERE id = :id;

-- position: The newest event of all streams.
SELECT coalesce(max(position), 0) FROM events;

-- append: Add one event.
INSERT INTO events (stream, seq, id, type, actor, scope, scope_key, session, subject, key, occurred_at, recorded_at, body, salt, payload_hash, hash, clock)
VALUES (:stream, :seq, :id, :type, :actor, :scope, :scope_key, :session, :subject, :key, :occurred_at, :recorded_at, :body, :salt, :payload_hash, :hash,
  :clock)
RETURNING position;

-- clear_events: Forget the log, which is about to be written anew.
DELETE FROM events;

-- clear_heads: The same for the ends of streams.
UPDATE streams SET seq = 0, hash = :hash;

-- erase_payload: Remove an event's payload for good; its hashes stay.
UPDATE events SET body = NULL, salt = NULL WHERE id = :id;

-- event: One event by its id.
SELECT * FROM entries WHERE id = :id;

-- event_before: The hash of the entry before the one at a position, in its stream.
SELECT b.hash FROM events e JOIN events b ON b.stream = e.stream AND b.position < e.position
WHERE e.position = :position ORDER BY b.position DESC LIMIT 1;

-- event_for_key: The first event that an idempotency key stands for: two clones may each have used it. The sum: see first_since.
SELECT * FROM entries WHERE scope_key = :scope_key AND actor = :actor AND key = :key ORDER BY position + 0 LIMIT 1;

-- events: The log in commit order.
SELECT * FROM entries WHERE position > :after ORDER BY position LIMIT :limit;

-- events_of_scope: What was recorded from exactly one scope.
SELECT * FROM entries WHERE scope_key = :scope_key AND (:any_type OR type IN (:types)) ORDER BY position LIMIT :limit;

-- claims_of_scope: The live units that the newest entries of a scope claimed; of episodes those kept higher up. Bodies are read last.
SELECT id, body FROM units WHERE id IN (
  SELECT subject FROM events
  WHERE scope_key = :scope_key AND type = 'unit.remembered' AND position > coalesce((
    SELECT position FROM events WHERE scope_key = :scope_key ORDER BY position DESC LIMIT 1 OFFSET :last), 0))
  AND live AND NOT kind IN (:but) AND (kind <> 'episode' OR level >= :kept_at) ORDER BY id;

-- events_of_subject: The newest events about one subject, oldest first.
SELECT * FROM (
  SELECT * FROM entries WHERE subject = :subject AND position > :after ORDER BY position DESC LIMIT :last
) AS newest ORDER BY position;

-- held: What kept some units down, oldest first.
SELECT * FROM entries WHERE subject IN (:subjects) AND type = 'unit.held' ORDER BY position;

-- events_back: A page of the log, newest first, of the scopes that begin and end so.
SELECT * FROM entries
WHERE position < :before AND position >= :first AND recorded_at >= :since
  AND substr(scope, 1, length(:beginning)) = :beginning
  AND (:ending = '' OR substr(scope, -length(:ending)) = :ending)
  AND (CAST(:actor AS TEXT) IS NULL OR actor = :actor)
  AND (:any_type OR type IN (:types))
ORDER BY position DESC LIMIT :limit;

-- events_of_type_back: The same of one type that is rare enough to have an index.
SELECT * FROM entries
WHERE type = :type AND type NOT IN ('logged', 'recalled', 'graph.changed', 'unit.remembered')
  AND position < :before AND position >= :first AND recorded_at >= :since
  AND substr(scope, 1, length(:beginning)) = :beginning
  AND (:ending = '' OR substr(scope, -length(:ending)) = :ending)
  AND (CAST(:actor AS TEXT) IS NULL OR actor = :actor)
ORDER BY position DESC LIMIT :limit;

-- events_of_scope_back: The same of exactly one scope.
SELECT * FROM entries
WHERE scope_key = :scope_key AND position < :before AND position >= :first AND recorded_at >= :since
  AND (CAST(:actor AS TEXT) IS NULL OR actor = :actor)
  AND (:any_type OR type IN (:types))
ORDER BY position DESC LIMIT :limit;

-- ingested_since: How many entries an actor handed to the write pipeline in one session since a moment.
SELECT count(*) FROM events
WHERE scope_key = :scope_key AND position >= :first AND recorded_at >= :since AND type = 'logged' AND actor = :actor
  AND coalesce(session, '') = :session AND instr(coalesce(body, ''), '"ingest":{') > 0;

-- waiting_entries: The entries that were over the rate limit of the write pipeline and came to nothing yet, oldest first.
SELECT * FROM entries e
WHERE e.scope_key = :scope_key AND e.position >= :first AND e.recorded_at >= :since AND e.type = 'logged'
  AND e.actor = :actor AND instr(coalesce(e.body, ''), '"waiting":true') > 0 AND NOT EXISTS (
    SELECT 1 FROM events o WHERE o.scope_key = :scope_key AND o.actor = :actor
      AND o.key = 'key:' || replace(e.id, '-', ''))
ORDER BY e.position LIMIT :limit;

-- scopes: Every scope that something was recorded from, each by one step in the index.
WITH RECURSIVE known (scope_key) AS (
  SELECT min(scope_key) FROM events
  UNION ALL
  SELECT (SELECT min(scope_key) FROM events WHERE scope_key > known.scope_key) FROM known WHERE known.scope_key IS NOT NULL)
SELECT (SELECT scope FROM events WHERE scope_key = known.scope_key LIMIT 1) FROM known WHERE scope_key IS NOT NULL;

-- first_since: The first entry since a moment. The sum keeps the planner from walking there from the first of all.
SELECT min(position + 0) FROM events WHERE recorded_at >= :since;

-- activity_since: Who did what where since a moment, and when last.
SELECT actor, scope, type, count(*), max(recorded_at) FROM events
WHERE recorded_at >= :since AND substr(scope, 1, length(:beginning)) = :beginning
GROUP BY actor, scope, type;

-- stuck_tasks: The tasks that somebody called stuck and nobody cleared, newest first.
SELECT * FROM entries e
WHERE e.type = 'task.stuck' AND e.type NOT IN ('logged', 'recalled', 'graph.changed', 'unit.remembered') AND substr(e.scope, 1, length(:beginning)) = :beginning AND NOT EXISTS (
  SELECT 1 FROM events c WHERE c.subject = e.subject AND c.position > e.position
    AND (c.type = 'task.stuck' OR (c.type = 'attempts.cleared' AND instr(coalesce(c.body, ''), '"unstuck":false') = 0)))
ORDER BY e.position DESC LIMIT :limit;

-- events_named: The events whose id begins so.
SELECT * FROM entries WHERE id >= :low AND id < :high ORDER BY id LIMIT :limit;

-- recent_events_named: The same by the last group of the id, among the newest: an index of random texts slows every append.
SELECT * FROM entries WHERE id IN (
  SELECT id FROM (SELECT id FROM events WHERE id < '~' ORDER BY id DESC LIMIT :newest) AS newest
  WHERE substr(id, 25) >= :low AND substr(id, 25) < :high) ORDER BY id LIMIT :limit;

-- events_containing: The events whose payload holds a text in whichever case: all, or of one project and its org. A scan.
SELECT * FROM entries
WHERE body IS NOT NULL AND (CAST(:org AS TEXT) IS NULL OR (org = :org AND project IN ('', :project)))
  AND instr(lower(body), :needle) > 0 ORDER BY position;

-- unit: One unit.
SELECT id, body FROM units WHERE id = :id;

-- units: Some units.
SELECT id, body FROM units WHERE id IN (:ids);

-- units_named: The units whose id, or its last group, begins so.
SELECT id, body FROM units
WHERE (id >= :low AND id < :high) OR (substr(id, 25) >= :low AND substr(id, 25) < :high) LIMIT :limit;

-- live_units_in: A page of what is live in one scope, newest first, without reading what was replaced or archived (D7).
SELECT id, body FROM units
WHERE live AND scope_key = :scope_key
  AND (CAST(:kind AS TEXT) IS NULL OR kind = :kind)
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
  AND (CAST(:level AS INTEGER) IS NULL OR level = :level)
  AND (CAST(:domain AS TEXT) IS NULL OR domain = :domain)
  AND id < :before
ORDER BY id DESC LIMIT :limit;

-- past_units_in: The same of what was replaced or archived.
SELECT id, body FROM units
WHERE NOT live AND scope_key = :scope_key
  AND (CAST(:kind AS TEXT) IS NULL OR kind = :kind)
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
  AND (CAST(:level AS INTEGER) IS NULL OR level = :level)
  AND (CAST(:domain AS TEXT) IS NULL OR domain = :domain)
  AND id < :before
ORDER BY id DESC LIMIT :limit;

-- guides_in: The live policies, anchors or core memory of some scopes, newest first: few among many, asked for each time.
SELECT id, body FROM units
WHERE live AND kind IN ('policy', 'anchor', 'core') AND kind = :kind AND scope_key IN (:scope_keys)
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
  AND (CAST(:level AS INTEGER) IS NULL OR level = :level)
  AND (CAST(:domain AS TEXT) IS NULL OR domain = :domain)
  AND id < :before
ORDER BY id DESC LIMIT :limit;

-- accounts_in: The live episodes or skills of some scopes, newest first: few among many, asked for at each verification.
SELECT id, body FROM units
WHERE live AND kind IN ('episode', 'skill') AND kind = :kind AND scope_key IN (:scope_keys)
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
  AND (CAST(:level AS INTEGER) IS NULL OR level = :level)
  AND (CAST(:domain AS TEXT) IS NULL OR domain = :domain)
  AND id < :before
ORDER BY id DESC LIMIT :limit;

-- replaced_in: The units of some scopes that a commit replaced, newest first.
SELECT id, body FROM units
WHERE status = 'deprecated' AND root IS NULL AND valid_to_commit IS NOT NULL AND scope_key IN (:scope_keys)
  AND (CAST(:kind AS TEXT) IS NULL OR kind = :kind)
  AND (CAST(:domain AS TEXT) IS NULL OR domain = :domain)
ORDER BY id DESC LIMIT :limit;

-- units_with_text: The units with exactly this canonical text, live or not.
SELECT id, body FROM units WHERE canonical_key = :canonical_key AND coalesce(scope_key, '') IN (:scope_keys) ORDER BY id;

-- units_saying: The same in every scope.
SELECT id, body FROM units WHERE canonical_key = :canonical_key ORDER BY id;

-- units_of_topic: The live units that say something of the same subject: verified ones first, then the newest.
SELECT id, body FROM units
WHERE live AND topic_key = :topic_key AND coalesce(scope_key, '') IN (:scope_keys)
ORDER BY status DESC, id DESC LIMIT :limit;

-- of_topics: The live units of any of these topics.
SELECT id, body FROM units WHERE live AND topic_key IN (:topic_keys) AND coalesce(scope_key, '') IN (:scope_keys) ORDER BY id;

-- rejected_of_topic: The rejected units of a topic in every scope, newest first.
SELECT id, body FROM units
WHERE status = 'archived' AND topic_key = :topic_key AND instr(body, '"archive_reason":"rejected: ') > 0
ORDER BY id DESC LIMIT :limit;

-- units_citing: The units that cite one of some things of one kind.
SELECT DISTINCT u.id, u.body FROM citations c JOIN units u ON u.id = c.unit_id
WHERE c.kind = :kind AND c.ref IN (:refs) AND coalesce(u.scope_key, '') IN (:scope_keys)
ORDER BY u.id;

-- live_citing: The live ones among them, but those of some kinds.
SELECT DISTINCT u.id, u.body FROM citations c JOIN units u ON u.id = c.unit_id
WHERE c.kind = :kind AND c.ref IN (:refs) AND coalesce(u.scope_key, '') IN (:scope_keys)
  AND u.live AND NOT u.kind IN (:but)
ORDER BY u.id;

-- tests_cited: The tests that live units of some scopes cite.
SELECT DISTINCT c.ref FROM units u JOIN citations c ON c.unit_id = u.id
WHERE u.live AND u.scope_key IN (:scope_keys) AND c.kind = 'test' ORDER BY c.ref;

-- newest_citing: The newest units that cite one thing.
SELECT u.id, u.body FROM citations c JOIN units u ON u.id = c.unit_id
WHERE c.kind = :kind AND c.ref = :ref AND coalesce(u.scope_key, '') IN (:scope_keys) AND (:any OR u.live)
ORDER BY c.unit_id DESC LIMIT :limit;

-- units_citing_code: A page of the units that cite files or symbols, in every scope, for the janitor.
SELECT u.id, u.body FROM units u
WHERE u.id > :after AND EXISTS (SELECT 1 FROM citations c WHERE c.unit_id = u.id AND c.kind IN ('file', 'symbol'))
ORDER BY u.id LIMIT :limit;

-- units_of_kinds: The live units of some kinds, in every scope, for the operator.
SELECT id, body FROM units WHERE live AND kind IN (:kinds) ORDER BY id;

-- ageing_units: The same for episodes and skills, which are few among many.
SELECT id, body FROM units WHERE live AND kind IN ('episode', 'skill') AND kind IN (:kinds) ORDER BY id;

-- searchable_after: A page of what an index has still to learn, with all that changed at its last position.
SELECT id, scope_key, status, kind, domain, session, turn, body, searchable_at FROM units
WHERE searchable_at > :position AND searchable_at <= (
  SELECT max(searchable_at) FROM (
    SELECT searchable_at FROM units WHERE searchable_at > :position ORDER BY searchable_at LIMIT :limit) AS page)
ORDER BY searchable_at, id;

-- searchable_count_after: The number of units that an index has still to learn.
SELECT count(*) FROM units WHERE searchable_at > :position;

-- put_unit: A unit's newest state. It keeps its turn in its session, and its place in search unless search must see the change.
INSERT INTO units (id, scope_key, level, kind, domain, status, live, canonical_key, topic_key, searchable_at, body, root, place, strength,
  valid_to_commit, target, session, turn)
VALUES (:id, :scope_key, :level, :kind, :domain, :status, :live, :canonical_key, :topic_key, coalesce(:searchable_at, 0), :body, :root, :place,
  :strength, :valid_to_commit, :target, :session,
  CASE WHEN CAST(:session AS TEXT) IS NULL THEN 0 ELSE (SELECT coalesce(max(turn), 0) + 1 FROM units WHERE session = :session) END)
ON CONFLICT (id) DO UPDATE SET
  root = excluded.root, place = excluded.place, strength = excluded.strength,
  valid_to_commit = excluded.valid_to_commit, target = excluded.target,
  scope_key = excluded.scope_key, level = excluded.level, kind = excluded.kind, domain = excluded.domain,
  status = excluded.status, live = excluded.live, canonical_key = coalesce(excluded.canonical_key, units.canonical_key),
  topic_key = coalesce(excluded.topic_key, units.topic_key), searchable_at = coalesce(:searchable_at, units.searchable_at), body = excluded.body;

-- put_citation: One citation of a unit.
INSERT INTO citations (kind, ref, unit_id) VALUES (:kind, :ref, :unit_id) ON CONFLICT DO NOTHING;

-- drop_citations: A unit's citations, before they are written again.
DELETE FROM citations WHERE unit_id = :unit_id;

-- put_link: A link's newest state.
INSERT INTO links (id, type, open, body) VALUES (:id, :type, :open, :body)
ON CONFLICT (id) DO UPDATE SET type = excluded.type, open = excluded.open, body = excluded.body;

-- put_link_unit: One unit of a link.
INSERT INTO link_units (unit_id, link_id) VALUES (:unit_id, :link_id) ON CONFLICT DO NOTHING;

-- drop_link: Remove a link of an erased unit.
DELETE FROM links WHERE id = :id;

-- drop_link_units: The same for the units of a link.
DELETE FROM link_units WHERE link_id = :link_id;

-- link: One link.
SELECT id, body FROM links WHERE id = :id;

-- links_named: The links whose id, or its last group, begins so.
SELECT id, body FROM links
WHERE (id >= :low AND id < :high) OR (substr(id, 25) >= :low AND substr(id, 25) < :high) LIMIT :limit;

-- links_of: The links of a unit.
SELECT l.id, l.body FROM link_units m JOIN links l ON l.id = m.link_id WHERE m.unit_id = :unit_id ORDER BY l.id;

-- units_of_link: The units of a link, the oldest first.
SELECT unit_id FROM link_units WHERE link_id = :link_id ORDER BY unit_id;

-- open_links: The undecided links, each with those of its units that are live and visible.
SELECT l.id, l.body, u.id FROM links l
JOIN link_units m ON m.link_id = l.id
JOIN units u ON u.id = m.unit_id AND u.live AND coalesce(u.scope_key, '') IN (:scope_keys)
WHERE l.open AND l.type = :type ORDER BY l.id, u.id;

-- conflicts_of: The conflicts of a few units, the oldest first.
SELECT DISTINCT l.id, l.body FROM link_units m JOIN links l ON l.id = m.link_id
WHERE m.unit_id IN (:unit_ids) AND l.type = 'contradicts' ORDER BY l.id;

-- contested: Of some units, those that a live unit contradicts, or that two clones changed at once, while nobody has decided. By units first: SQLite keeps the order of a cross join.
SELECT DISTINCT m.unit_id FROM link_units m CROSS JOIN links l
WHERE l.id = m.link_id AND m.unit_id IN (:unit_ids) AND l.open AND l.type = 'contradicts' AND (EXISTS (
  SELECT 1 FROM link_units n JOIN units o ON o.id = n.unit_id
  WHERE n.link_id = m.link_id AND n.unit_id <> m.unit_id AND o.live AND coalesce(o.scope_key, '') IN (:scope_keys))
  OR NOT EXISTS (SELECT 1 FROM link_units n WHERE n.link_id = m.link_id AND n.unit_id <> m.unit_id));

-- in_force: The version of a decision that is in force.
SELECT id, body FROM units WHERE root = :root AND live;

-- versions: Every version of a decision, for its history only (D7).
SELECT id, body FROM units WHERE root = :root ORDER BY place;

-- decided: A page of the decisions in force in one scope and domain with one strength.
SELECT id, body FROM units
WHERE live AND root IS NOT NULL AND scope_key = :scope_key AND domain = :domain AND strength = :strength AND id > :after
ORDER BY id LIMIT :limit;

-- firm: The axes and locks in force in some scopes and domains, the firmest first. They are few.
SELECT id, body FROM units
WHERE live AND root IS NOT NULL AND scope_key IN (:scope_keys) AND domain IN (:domains) AND strength > 1
ORDER BY strength DESC, id;

-- normal_count: How many normal decisions are in force there, counted up to a limit.
SELECT count(*) FROM (
  SELECT 1 FROM units
  WHERE live AND root IS NOT NULL AND scope_key IN (:scope_keys) AND domain IN (:domains) AND strength = 1
  LIMIT :limit) known;

-- domains_decided: The domains of the decisions in force in one scope, each by one step in the index.
WITH RECURSIVE known (domain) AS (
  SELECT min(domain) FROM units WHERE live AND root IS NOT NULL AND scope_key = :scope_key
  UNION ALL
  SELECT (SELECT min(domain) FROM units WHERE live AND root IS NOT NULL AND scope_key = :scope_key AND domain > known.domain)
  FROM known WHERE known.domain IS NOT NULL)
SELECT domain FROM known WHERE domain IS NOT NULL;

-- related: The decisions in force that are related to a decision, the firmest first.
SELECT id, body FROM units
WHERE live AND coalesce(scope_key, '') IN (:scope_keys) AND root IN (
  SELECT target FROM relations WHERE source = :root UNION SELECT source FROM relations WHERE target = :root)
ORDER BY strength DESC, root LIMIT :limit;

-- anchored: What the anchors of some domains lead to: the firmest decisions first, then evidence. Bodies are read last.
SELECT id, body, strength FROM units WHERE id IN (
  SELECT t.id FROM units a JOIN units t ON t.id = a.target
  WHERE a.live AND a.kind IN ('policy', 'anchor', 'core') AND a.kind = 'anchor' AND a.scope_key IN (:scope_keys) AND a.domain IN (:domains)
    AND t.live AND (t.root IS NOT NULL OR t.kind = 'evidence') AND coalesce(t.scope_key, '') IN (:scope_keys))
ORDER BY coalesce(strength, 0) DESC, id LIMIT :limit;

-- put_relation: One decision's relation to another, with the event that stated it last.
INSERT INTO relations (source, type, target, id) VALUES (:source, :type, :target, :id)
ON CONFLICT (source, type, target) DO UPDATE SET id = excluded.id;

-- drop_relation: Remove a relation.
DELETE FROM relations WHERE source = :source AND type = :type AND target = :target;

-- relations_from: The relations that begin at some decisions.
SELECT source, type, target, id FROM relations WHERE source IN (:roots) ORDER BY source, type, target;

-- relations_to: The relations that end at some decisions.
SELECT source, type, target, id FROM relations WHERE target IN (:roots) ORDER BY target, type, source;

-- put_test: The newest outcome of a test in one place.
INSERT INTO tests (org, project, name, place, witnessed, called, passed, flaky, tree, greened_by, at, event_id)
VALUES (:org, :project, :name, :place, :witnessed, :called, :passed, :flaky, :tree, :greened_by, :at, :event_id)
ON CONFLICT (org, project, name, place, witnessed) DO UPDATE SET
  passed = excluded.passed, flaky = excluded.flaky, tree = excluded.tree, greened_by = excluded.greened_by,
  at = excluded.at, event_id = excluded.event_id;

-- drop_tests: Forget the outcomes that these events recorded last.
DELETE FROM tests WHERE event_id IN (:event_ids);

-- tests: The newest outcomes of some tests by their whole names.
SELECT name, place, witnessed, passed, flaky, tree, greened_by, at, event_id FROM tests
WHERE org = :org AND project = :project AND name IN (:names) ORDER BY name, place, witnessed;

-- tests_called: The same by what people call them.
SELECT name, place, witnessed, passed, flaky, tree, greened_by, at, event_id FROM tests
WHERE org = :org AND project = :project AND called IN (:names) ORDER BY name, place, witnessed;

-- tests_behind: What was seen in one place of the tests that some units cite: as people call them, or by whole names with what follows.
SELECT name, place, witnessed, passed, flaky, tree, greened_by, at, event_id FROM tests
WHERE org = :org AND project = :project AND place = :place AND witnessed AND name IN (
  SELECT t.name FROM citations c JOIN tests t ON t.called = c.ref
  WHERE c.unit_id IN (:unit_ids) AND c.kind = 'test' AND t.org = :org AND t.project = :project
  UNION SELECT t.name FROM citations c JOIN tests t ON t.name >= c.ref AND t.name < c.ref || '\'
  WHERE c.unit_id IN (:unit_ids) AND c.kind = 'test' AND t.org = :org AND t.project = :project);

-- runs_behind: The runs of one task that gave the newest outcomes of some tests.
SELECT * FROM entries WHERE scope_key = :scope_key AND id IN (
  SELECT event_id FROM tests WHERE org = :org AND project = :project AND name IN (:names));

-- put_use: What a task did with a unit; a flag that is set stays set.
INSERT INTO uses (unit_id, task_key, handed, used, credited, blamed)
VALUES (:unit_id, :task_key, :handed, :used, :credited, :blamed)
ON CONFLICT (unit_id, task_key) DO UPDATE SET
  handed = uses.handed OR excluded.handed, used = uses.used OR excluded.used,
  credited = uses.credited OR excluded.credited, blamed = uses.blamed OR excluded.blamed;

-- drop_uses: The uses of an erased unit.
DELETE FROM uses WHERE unit_id = :unit_id;

-- use: What one task did with one unit.
SELECT unit_id, task_key, handed, used, credited, blamed FROM uses WHERE unit_id = :unit_id AND task_key = :task_key;

-- noted_uses: Of some units, those that a task was handed, used or was credited with.
SELECT unit_id FROM uses WHERE unit_id IN (:unit_ids) AND task_key = :task_key;

-- used_in_task: The units that a task used.
SELECT unit_id FROM uses WHERE task_key = :task_key AND used ORDER BY unit_id;

-- uses_of_task: The units that a task met.
SELECT unit_id, task_key, handed, used, credited, blamed FROM uses WHERE task_key = :task_key ORDER BY unit_id;

-- code_met: The files that units cite which a task met and was not credited with, each with the unit.
SELECT m.unit_id, c.ref FROM uses m JOIN citations c ON c.unit_id = m.unit_id
WHERE m.task_key = :task_key AND NOT m.credited AND c.kind IN ('file', 'symbol') ORDER BY m.unit_id, c.ref;

-- uses_of_unit: The tasks that met a unit.
SELECT unit_id, task_key, handed, used, credited, blamed FROM uses WHERE unit_id = :unit_id ORDER BY task_key;

-- counts: What there is, by one property at a time.
SELECT 'status' AS property, status AS name, count(*) FROM units GROUP BY status
UNION ALL SELECT 'kind', kind, count(*) FROM units GROUP BY kind
UNION ALL SELECT 'level', CAST(level AS TEXT), count(*) FROM units GROUP BY level
UNION ALL SELECT 'total', 'events', count(*) FROM events
UNION ALL SELECT 'total', 'streams', count(*)
FROM (SELECT DISTINCT org, project FROM streams WHERE seq > 0 AND org <> 'mnemarch-doctor') AS projects
UNION ALL SELECT 'total', 'open_conflicts', count(*) FROM links l WHERE l.open AND l.type = 'contradicts' AND EXISTS (
  SELECT 1 FROM link_units m JOIN units u ON u.id = m.unit_id WHERE m.link_id = l.id
  GROUP BY m.link_id HAVING sum(CASE WHEN u.live THEN 1 ELSE 0 END) >= CASE count(*) WHEN 1 THEN 1 ELSE 2 END);

-- row_units: Every unit, for the digest and the audit; its key comes first, as in the next ones. Not what only search needs.
SELECT id, body, scope_key, level, kind, domain, status, live, root, place, strength, valid_to_commit, target
FROM units ORDER BY id;

-- row_citations: Every citation.
SELECT unit_id, kind, ref FROM citations ORDER BY unit_id, kind, ref;

-- row_links: Every link.
SELECT id, type, open, body FROM links ORDER BY id;

-- row_link_units: Every unit of a link.
SELECT link_id, unit_id FROM link_units ORDER BY link_id, unit_id;

-- row_relations: Every relation.
SELECT source, type, target, id FROM relations ORDER BY source, type, target;

-- put_code_rule: Insert a code rule.
INSERT INTO memory_code_rules (id, project_id, name, description, category, before_pattern, after_pattern, pattern_type, languages,
  confidence, observation_count, success_count, failure_count, min_confidence_threshold, promotion_threshold,
  created_at, updated_at)
VALUES (:id, :project_id, :name, :description, :category, :before_pattern, :after_pattern, :pattern_type, :languages,
  :confidence, :observation_count, :success_count, :failure_count, :min_confidence_threshold,
  :promotion_threshold, :created_at, :updated_at)
ON CONFLICT (id) DO NOTHING;

-- judge_code_rule: How well a rule did so far.
UPDATE memory_code_rules SET confidence = :confidence, observation_count = :observation_count,
  success_count = :success_count, failure_count = :failure_count, updated_at = :updated_at
WHERE id = :id;

-- drop_code_rules: Forget these rules.
DELETE FROM memory_code_rules WHERE id IN (:ids);

-- code_rules: The rules of a project, the surest first.
SELECT id, project_id, name, description, category, before_pattern, after_pattern, pattern_type, languages,
  confidence, observation_count, success_count, failure_count, min_confidence_threshold, promotion_threshold,
  created_at, updated_at FROM memory_code_rules
WHERE project_id = :project_id
ORDER BY confidence DESC, id;

-- row_tests: Every test outcome.
SELECT org, project, name, place, witnessed, called, passed, flaky, tree, greened_by, at, event_id FROM tests
ORDER BY org, project, name, place, witnessed;

-- row_uses: Every use.
SELECT unit_id, task_key, handed, used, credited, blamed FROM uses ORDER BY unit_id, task_key;

-- row_search: Where search and conversations have each unit, and the keys by which its text is known again.
SELECT id, searchable_at, session, turn, canonical_key, topic_key FROM units ORDER BY id;

-- row_code_rules: Every code rule.
SELECT id, project_id, name, description, category, before_pattern, after_pattern, pattern_type, languages,
  confidence, observation_count, success_count, failure_count, min_confidence_threshold, promotion_threshold,
  created_at, updated_at FROM memory_code_rules ORDER BY id;

-- clear_units: Drop a projection before it is made again from the log.
DELETE FROM units;

-- clear_citations: The same for citations.
DELETE FROM citations;

-- clear_links: The same for links.
DELETE FROM links;

-- clear_link_units: The same for their units.
DELETE FROM link_units;

-- clear_relations: The same for relations.
DELETE FROM relations;

-- clear_tests: The same for test outcomes.
DELETE FROM tests;

-- clear_uses: The same for uses.
DELETE FROM uses;

-- clear_code_rules: The same for code rules.
DELETE FROM memory_code_rules;
