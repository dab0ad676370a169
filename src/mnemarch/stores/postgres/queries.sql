What only PostgreSQL says. A query of this name takes the place of the shared one. `:tenant` is whose row it becomes.

-- begin: The role, the tenants and the time-outs of one transaction.
SELECT act_as(:role, :wide, :own), set_config('statement_timeout', :statement_ms, true), set_config('lock_timeout', :lock_ms, true);

-- flush_later: The disk is waited for when no lock is held any more. By set_config, so that workers of a cluster flush by themselves.
SELECT set_config('synchronous_commit', 'off', true);

-- end_before: Where a stream ended before an entry that is in it. The commit of this waits until that is on the disk.
SELECT e.seq - 1, coalesce(b.hash, ''), e.position - 1, pg_logical_emit_message(true, 'mnemarch', '')
FROM events e LEFT JOIN events b ON b.tenant = e.tenant AND b.position < e.position AND b.writer = ''
WHERE e.id = :first ORDER BY e.position, b.position DESC LIMIT 1;

-- new_stream: Have a head to lock.
INSERT INTO streams (tenant, org, project) VALUES (:tenant, :org, :project) ON CONFLICT DO NOTHING;

-- new_writer: Have the end of a writer's own stream.
INSERT INTO streams (tenant, org, project, writer) VALUES (:tenant, :org, :project, :writer) ON CONFLICT DO NOTHING;

-- lock_head: Be the only writer of a stream until the transaction ends.
SELECT seq, hash, position FROM streams WHERE tenant = :tenant AND writer = '' FOR NO KEY UPDATE;

-- ends: Where the streams of some tenants end.
SELECT tenant, seq, hash, position FROM streams WHERE tenant IN (:tenants) AND writer = '';

-- still_ends: Go on only if a stream ends where it did, and nothing changed at its org's level; else the division fails.
SELECT 1 / count(*) FROM streams WHERE tenant = :tenant AND writer = '' AND seq = :seq AND hash = :hash AND position = :position
  AND coalesce((SELECT position FROM streams WHERE tenant = :wide AND writer = ''), 0) = :wide_position;

-- lock_all: Be the only writer of all streams.
LOCK TABLE streams IN EXCLUSIVE MODE;

-- last_position: How far the furthest stream has come.
SELECT coalesce(max(position), 0) FROM streams;

-- head: The end of one stream.
SELECT 0, seq, hash FROM streams WHERE org = :org AND project = :project AND tenant = :tenant AND writer = :writer;

-- move_head: Move the end of a stream to its newest event.
UPDATE streams SET seq = :seq, hash = :hash, position = :position WHERE tenant = :tenant AND writer = :writer;

-- move_position: Say that a tenant has come further: by another writer, or an org in the stream of one of its projects.
UPDATE streams SET position = greatest(position, :position) WHERE tenant = :tenant AND writer = '';

-- append: Add one event.
INSERT INTO events (tenant, position, seq, id, type, actor, scope, scope_key, session, subject, key, occurred_at, recorded_at, body, salt, payload_hash, hash, writer, clock)
VALUES (:tenant, :position, :seq, :id, :type, :actor, :scope, :scope_key, :session, :subject, :key, :occurred_at, :recorded_at, :body, :salt, :payload_hash, :hash,
  :writer, :clock);

-- append_all: Add some events, given as JSON: one statement costs a fraction of many.
INSERT INTO events (tenant, position, seq, id, type, actor, scope, scope_key, session, subject, key, occurred_at, recorded_at, body, salt, payload_hash, hash, writer, clock)
SELECT tenant, position, seq, id, type, actor, scope, scope_key, session, subject, key, occurred_at, recorded_at, body,
  decode(salt, 'hex'), decode(payload_hash, 'hex'), decode(hash, 'hex'), writer, clock
FROM json_to_recordset(CAST(:rows AS JSON)) AS e (tenant text, position bigint, seq bigint, id text, type text, actor text, scope text, scope_key text,
  session text, subject text, key text, occurred_at bigint, recorded_at bigint, body text, salt text, payload_hash text, hash text, writer text, clock text)
ORDER BY position;

-- event_before: The hash of the entry before the one at a position, in its stream.
SELECT b.hash FROM events e JOIN events b ON b.tenant = e.tenant AND b.writer = e.writer AND b.position < e.position
WHERE e.id = :id ORDER BY b.position DESC LIMIT 1;

-- events: The log in order; what has one position comes together.
SELECT * FROM entries WHERE position > :after ORDER BY position FETCH FIRST (:limit) ROWS WITH TIES;

-- all_events: The same to the end.
SELECT * FROM entries WHERE position > :after ORDER BY position, id;

-- event_at: The event at a position of one tenant.
SELECT id FROM events WHERE tenant = :tenant AND position = :position;

-- searchable_in: A page of what an index has still to learn of one tenant, with all that changed at its last position.
SELECT * FROM (
  SELECT id, scope_key, status, kind, domain, session, turn, body, searchable_at FROM units
  WHERE tenant = :tenant AND searchable_at > :position ORDER BY searchable_at FETCH FIRST :limit ROWS WITH TIES) AS page
ORDER BY searchable_at, id;

-- searchable_count_in: The number of units of one tenant that an index has still to learn.
SELECT count(*) FROM units WHERE tenant = :tenant AND searchable_at > :position;

-- events_back: A page of the log, newest first, of the scopes that begin and end so.
SELECT * FROM entries
WHERE position < :before AND position >= :first AND recorded_at >= :since
  AND starts_with(scope, :beginning) AND right(scope, length(:ending)) = :ending
  AND (CAST(:actor AS TEXT) IS NULL OR actor = :actor)
  AND (:any_type OR type IN (:types))
ORDER BY position DESC LIMIT :limit;

-- events_of_type_back: The same of one type that is rare enough to have an index.
SELECT * FROM entries
WHERE type = :type AND type NOT IN ('logged', 'recalled', 'graph.changed', 'unit.remembered')
  AND position < :before AND position >= :first AND recorded_at >= :since
  AND starts_with(scope, :beginning) AND right(scope, length(:ending)) = :ending
  AND (CAST(:actor AS TEXT) IS NULL OR actor = :actor)
ORDER BY position DESC LIMIT :limit;

-- move_unit: A unit that rises to the org leaves its project.
UPDATE units SET tenant = :tenant WHERE id = :id AND tenant <> :tenant;

-- move_links: The links of a unit whose units are all at the org's level by now.
UPDATE links SET tenant = :tenant WHERE tenant <> :tenant
  AND id IN (SELECT link_id FROM link_units WHERE unit_id = :id) AND NOT EXISTS (
    SELECT 1 FROM link_units m LEFT JOIN units u ON u.id = m.unit_id WHERE m.link_id = links.id AND coalesce(u.level, 0) < 4);

-- move_link_units: The same for the units of those links.
UPDATE link_units SET tenant = :tenant WHERE tenant <> :tenant AND link_id IN (SELECT id FROM links WHERE tenant = :tenant);

-- put_unit: A unit's newest state. It keeps its turn in its session, and its place in search unless search must see the change.
INSERT INTO units (tenant, id, scope_key, level, kind, domain, status, live, canonical_key, topic_key, searchable_at, body, root, place,
  strength, valid_to_commit, target, session, turn)
VALUES (:tenant, :id, :scope_key, :level, :kind, :domain, :status, :live, :canonical_key, :topic_key,
  coalesce(CAST(:searchable_at AS BIGINT), 0), :body, :root, :place, :strength, :valid_to_commit, :target, :session,
  CASE WHEN CAST(:session AS TEXT) IS NULL THEN 0 ELSE (SELECT coalesce(max(turn), 0) + 1 FROM units WHERE session = :session) END)
ON CONFLICT (tenant, id) DO UPDATE SET
  root = excluded.root, place = excluded.place, strength = excluded.strength,
  valid_to_commit = excluded.valid_to_commit, target = excluded.target,
  scope_key = excluded.scope_key, level = excluded.level, kind = excluded.kind, domain = excluded.domain,
  status = excluded.status, live = excluded.live, canonical_key = coalesce(excluded.canonical_key, units.canonical_key),
  topic_key = coalesce(excluded.topic_key, units.topic_key),
  searchable_at = coalesce(CAST(:searchable_at AS BIGINT), units.searchable_at), body = excluded.body;

-- put_citation: One citation of a unit.
INSERT INTO citations (tenant, kind, ref, unit_id) VALUES (:tenant, :kind, :ref, :unit_id) ON CONFLICT DO NOTHING;

-- put_link: A link's newest state. It is the org's if both its units are.
INSERT INTO links (tenant, id, type, open, body) VALUES (coalesce(
  (SELECT tenant FROM links WHERE id = :id),
  (SELECT max(tenant) FROM units WHERE id IN (:ends) HAVING count(*) = 2 AND min(level) = 4), :tenant), :id, :type, :open, :body)
ON CONFLICT (tenant, id) DO UPDATE SET type = excluded.type, open = excluded.open, body = excluded.body;

-- put_link_unit: One unit of a link.
INSERT INTO link_units (tenant, unit_id, link_id)
VALUES (coalesce((SELECT tenant FROM links WHERE id = :link_id), :tenant), :unit_id, :link_id) ON CONFLICT DO NOTHING;

-- put_relation: One decision's relation to another, with the event that stated it last. It belongs where its source does.
INSERT INTO relations (tenant, source, type, target, id)
VALUES (coalesce((SELECT tenant FROM units WHERE root = :source AND live), :tenant), :source, :type, :target, :id)
ON CONFLICT (tenant, source, type, target) DO UPDATE SET id = excluded.id;

-- put_test: The newest outcome of a test in one place.
INSERT INTO tests (tenant, org, project, name, place, witnessed, called, passed, flaky, tree, greened_by, at, event_id)
VALUES (:tenant, :org, :project, :name, :place, :witnessed, :called, :passed, :flaky, :tree, :greened_by, :at, :event_id)
ON CONFLICT (tenant, name, place, witnessed) DO UPDATE SET
  passed = excluded.passed, flaky = excluded.flaky, tree = excluded.tree, greened_by = excluded.greened_by,
  at = excluded.at, event_id = excluded.event_id;

-- put_use: What a task did with a unit; a flag that is set stays set.
INSERT INTO uses (tenant, unit_id, task_key, handed, used, credited, blamed)
VALUES (:tenant, :unit_id, :task_key, :handed, :used, :credited, :blamed)
ON CONFLICT (tenant, unit_id, task_key) DO UPDATE SET
  handed = uses.handed OR excluded.handed, used = uses.used OR excluded.used,
  credited = uses.credited OR excluded.credited, blamed = uses.blamed OR excluded.blamed;

-- size: The bytes of the database.
SELECT pg_database_size(current_database());

-- judge_code_rule: How well a rule did so far.
UPDATE memory_code_rules SET confidence = :confidence, observation_count = :observation_count,
  success_count = :success_count, failure_count = :failure_count, updated_at = :updated_at
WHERE CAST(id AS TEXT) = :id;

-- drop_code_rules: Forget these rules.
DELETE FROM memory_code_rules WHERE CAST(id AS TEXT) IN (:ids);
