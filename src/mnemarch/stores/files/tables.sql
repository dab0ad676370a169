-- Beside the tables of SQLite: streams have a writer and events a clock, and a key may come from two clones.
DROP VIEW entries;
DROP INDEX streams_name;
DROP INDEX events_key;
ALTER TABLE streams ADD COLUMN writer TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN clock TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX streams_name ON streams (org, project, writer);
CREATE INDEX events_key ON events (scope_key, actor, key) WHERE key IS NOT NULL;
CREATE VIEW entries AS
SELECT e.position, e.seq, e.id, e.type, e.actor, e.scope, e.scope_key, e.session, e.subject, e.key, e.occurred_at,
  e.recorded_at, e.body, e.salt, e.payload_hash, e.hash, s.org, s.project, s.writer, e.clock
FROM events e LEFT JOIN streams s ON s.id = e.stream;

-- How far the files were read: `digest` covers every line up to `size`, `stamp` is what the file system says of the file.
CREATE TABLE journals (path TEXT PRIMARY KEY, size INTEGER NOT NULL, digest TEXT NOT NULL, stamp TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE writers (writer TEXT PRIMARY KEY, lamport INTEGER NOT NULL, seen TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE broken (place TEXT PRIMARY KEY, problem TEXT NOT NULL) WITHOUT ROWID;
-- The writers that this folder has been; a copied folder has another `place`.
CREATE TABLE own (number INTEGER PRIMARY KEY, writer TEXT NOT NULL UNIQUE, lamport INTEGER NOT NULL, place TEXT NOT NULL);
CREATE TABLE replica (floor INTEGER NOT NULL);
INSERT INTO replica (floor) VALUES (0);
