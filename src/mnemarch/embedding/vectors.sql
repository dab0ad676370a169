schema
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS head (
  embedder TEXT NOT NULL, store TEXT NOT NULL, born TEXT NOT NULL, position INTEGER NOT NULL, event TEXT NOT NULL,
  complete INTEGER NOT NULL, serial INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS vectors (
  id TEXT PRIMARY KEY, serial INTEGER NOT NULL, text TEXT NOT NULL, scope TEXT, state TEXT, kind TEXT, domain TEXT,
  vector BLOB, erased INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS by_serial ON vectors (serial);

head
SELECT embedder, store, born, position, event, complete, serial FROM head

drop head
DELETE FROM head

drop vectors
DELETE FROM vectors WHERE NOT erased

begin
INSERT INTO head VALUES (?, ?, hex(randomblob(8)), 0, '', 0, 1)

after
SELECT id, text, scope, state, kind, domain, vector FROM vectors WHERE serial > ? ORDER BY serial

put
INSERT INTO vectors (id, serial, text, scope, state, kind, domain, vector)
VALUES (?, (SELECT serial + 1 FROM head), ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
  serial = excluded.serial, scope = excluded.scope, state = excluded.state, kind = excluded.kind,
  domain = excluded.domain, vector = CASE WHEN text = excluded.text THEN vector ELSE excluded.vector END,
  text = excluded.text
WHERE NOT erased

erase
INSERT INTO vectors (id, serial, text, erased) VALUES (?, coalesce((SELECT serial + 1 FROM head), 1), '', 1)
ON CONFLICT (id) DO UPDATE SET serial = excluded.serial, text = '', vector = NULL, erased = 1

reach
UPDATE head SET serial = serial + 1, position = ?, event = ?, complete = max(complete, ?)

touch
UPDATE head SET serial = serial + 1
