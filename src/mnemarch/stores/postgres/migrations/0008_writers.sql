-- A log that came from a folder of files has several writers: each has an end of its own in `streams`, its events have a
-- clock, and two writers may have used one key. Elsewhere both are empty. The row without a writer is the one to lock, and
-- its position is how far the tenant has come, whoever wrote.
DROP VIEW entries;
DROP INDEX events_key;
ALTER TABLE streams ADD COLUMN writer text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE streams DROP CONSTRAINT streams_pkey, ADD PRIMARY KEY (tenant, writer);
ALTER TABLE events ADD COLUMN writer text COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN clock text COLLATE "C" NOT NULL DEFAULT '';
CREATE UNIQUE INDEX events_key ON events (tenant, scope_key, actor, key, writer) WHERE key IS NOT NULL;
CREATE VIEW entries WITH (security_invoker = true) AS
SELECT e.position, e.seq, e.id, e.type, e.actor, e.scope, e.scope_key, e.session, e.subject, e.key, e.occurred_at,
  e.recorded_at, e.body, e.salt, e.payload_hash, e.hash, s.org, s.project, e.writer, e.clock
FROM events e LEFT JOIN streams s ON s.tenant = e.tenant AND s.writer = e.writer;
GRANT SELECT ON entries TO mnemarch_app, mnemarch_operator;
