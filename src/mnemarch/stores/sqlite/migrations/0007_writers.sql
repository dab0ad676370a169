-- The log of a folder of files has several writers: each has streams of its own, its events have a clock, and two writers
-- may have used one key. Elsewhere both are empty.
DROP VIEW entries;
DROP INDEX streams_name;
DROP INDEX events_key;
ALTER TABLE streams ADD COLUMN writer TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN clock TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX streams_name ON streams (org, project, writer);
CREATE UNIQUE INDEX events_key ON events (scope_key, actor, key, stream) WHERE key IS NOT NULL;
CREATE VIEW entries AS
SELECT e.position, e.seq, e.id, e.type, e.actor, e.scope, e.scope_key, e.session, e.subject, e.key, e.occurred_at,
  e.recorded_at, e.body, e.salt, e.payload_hash, e.hash, s.org, s.project, s.writer, e.clock
FROM events e LEFT JOIN streams s ON s.id = e.stream;
