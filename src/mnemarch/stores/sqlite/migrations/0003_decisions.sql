-- Decisions: which versions belong together, which of them is in force, and how firm it stands (D4, D5, D8).
ALTER TABLE units ADD COLUMN root TEXT;
ALTER TABLE units ADD COLUMN place INTEGER;
ALTER TABLE units ADD COLUMN strength INTEGER;
CREATE UNIQUE INDEX units_in_force ON units (root) WHERE live AND root IS NOT NULL;
CREATE UNIQUE INDEX units_versions ON units (root, place) WHERE root IS NOT NULL;
CREATE INDEX units_decided ON units (scope_key, domain, strength, id) WHERE live AND root IS NOT NULL;

-- What is live can be paged without passing over what it replaced (D7), and what guides without passing over the rest.
CREATE INDEX units_live ON units (scope_key, id, kind, domain) WHERE live;
CREATE INDEX units_guiding ON units (kind, scope_key, id, domain) WHERE live AND kind IN ('policy', 'anchor');

-- What a commit replaced still holds on branches without it; few units are ever so.
CREATE INDEX units_replaced ON units (scope_key, id)
WHERE status = 'deprecated' AND root IS NULL AND json_extract(body, '$.valid_to_commit') IS NOT NULL;

-- What a change of one decision reaches (D10), by the roots of both, so that a new version keeps its relations.
CREATE TABLE relations (
  source TEXT NOT NULL,
  type   TEXT NOT NULL,
  target TEXT NOT NULL,
  id     TEXT NOT NULL,
  PRIMARY KEY (source, type, target)
) WITHOUT ROWID;
CREATE INDEX relations_target ON relations (target, type);
