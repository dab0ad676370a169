-- The log. `position` is the commit order of the whole file; `seq` counts inside one stream and is what the chain covers.
CREATE TABLE store (
  id         TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

-- One stream for each project, and one for each org, whose project is ''.
CREATE TABLE streams (
  id      INTEGER PRIMARY KEY,
  org     TEXT NOT NULL,
  project TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  hash    BLOB NOT NULL
);
CREATE UNIQUE INDEX streams_name ON streams (org, project);

CREATE TABLE events (
  position     INTEGER PRIMARY KEY,
  stream       INTEGER NOT NULL REFERENCES streams (id),
  seq          INTEGER NOT NULL,
  id           TEXT NOT NULL,
  type         TEXT NOT NULL,
  actor        TEXT NOT NULL,
  scope        TEXT NOT NULL,
  scope_key    TEXT NOT NULL,
  session      TEXT,
  subject      TEXT,
  key          TEXT,
  occurred_at  INTEGER NOT NULL,
  recorded_at  INTEGER NOT NULL,
  body         TEXT,
  salt         BLOB,
  payload_hash BLOB NOT NULL,
  hash         BLOB NOT NULL
);
CREATE UNIQUE INDEX events_id ON events (id);
CREATE INDEX events_scope ON events (scope_key, position);
CREATE INDEX events_subject ON events (subject, position) WHERE subject IS NOT NULL;
CREATE INDEX events_recorded ON events (recorded_at);
-- Not of those that come all the time: nobody looks for one of them by its type.
CREATE INDEX events_type ON events (type, position) WHERE type NOT IN ('logged', 'recalled', 'graph.changed');
CREATE UNIQUE INDEX events_key ON events (scope_key, actor, key) WHERE key IS NOT NULL;

-- An event with its stream's name. One whose stream is gone is shown without it, not left out.
CREATE VIEW entries AS
SELECT e.position, e.seq, e.id, e.type, e.actor, e.scope, e.scope_key, e.session, e.subject, e.key, e.occurred_at,
  e.recorded_at, e.body, e.salt, e.payload_hash, e.hash, s.org, s.project
FROM events e LEFT JOIN streams s ON s.id = e.stream;

-- The projections: everything below can be dropped and made again from the log.
-- Versions of a decision share a `root`. A conversation's units have its `session` and their `turn` in it.
CREATE TABLE units (
  number          INTEGER PRIMARY KEY,
  id              TEXT NOT NULL,
  scope_key       TEXT NOT NULL,
  level           INTEGER NOT NULL,
  kind            TEXT NOT NULL,
  domain          TEXT NOT NULL,
  status          TEXT NOT NULL,
  live            INTEGER NOT NULL,
  canonical_key   TEXT,
  topic_key    TEXT,
  searchable_at   INTEGER NOT NULL,
  body            TEXT NOT NULL,
  root            TEXT,
  place           INTEGER,
  strength        INTEGER,
  valid_to_commit TEXT,
  target          TEXT,
  session         TEXT,
  turn            INTEGER NOT NULL
);
CREATE UNIQUE INDEX units_id ON units (id);
-- The last group of an id is random, and its beginning is how people name a unit.
CREATE INDEX units_short ON units (substr(id, 25));
CREATE INDEX units_scope ON units (scope_key, id);
CREATE INDEX units_canonical ON units (canonical_key, id) WHERE canonical_key IS NOT NULL;
CREATE INDEX units_topic ON units (topic_key, status, id) WHERE live AND topic_key IS NOT NULL;
-- What was rejected is refused when it comes back in other words.
CREATE INDEX units_archived ON units (topic_key, id) WHERE status = 'archived' AND topic_key IS NOT NULL;
CREATE INDEX units_searchable ON units (searchable_at);
CREATE INDEX units_kind ON units (kind) WHERE live AND kind IN ('episode', 'skill');
CREATE INDEX units_session ON units (session, turn) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX units_in_force ON units (root) WHERE live AND root IS NOT NULL;
CREATE UNIQUE INDEX units_versions ON units (root, place) WHERE root IS NOT NULL;
CREATE INDEX units_decided ON units (scope_key, domain, strength, id) WHERE live AND root IS NOT NULL;
-- What is live can be paged without reading what it replaced (D7), and guides without reading the rest.
CREATE INDEX units_live ON units (scope_key, id, kind, domain) WHERE live;
CREATE INDEX units_guiding ON units (kind, scope_key, id, domain) WHERE live AND kind IN ('policy', 'anchor');
-- What a commit replaced still holds on branches without it; few units are ever so.
CREATE INDEX units_replaced ON units (scope_key, id)
WHERE status = 'deprecated' AND root IS NULL AND valid_to_commit IS NOT NULL;

CREATE TABLE citations (
  kind    TEXT NOT NULL,
  ref     TEXT NOT NULL,
  unit_id TEXT NOT NULL,
  PRIMARY KEY (kind, ref, unit_id)
) WITHOUT ROWID;
CREATE INDEX citations_unit ON citations (unit_id);

CREATE TABLE links (
  id   TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  open INTEGER NOT NULL,
  body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX links_short ON links (substr(id, 25));
-- The units of each link: two, or all the members of a conflict. A further member is one more row, however many there are.
CREATE TABLE link_units (
  unit_id TEXT NOT NULL,
  link_id TEXT NOT NULL,
  PRIMARY KEY (unit_id, link_id)
) WITHOUT ROWID;
CREATE INDEX link_units_link ON link_units (link_id, unit_id);
CREATE INDEX links_open ON links (type, id) WHERE open;

-- Relations of decisions, by the roots of both, so that a new version keeps its relations (D10).
CREATE TABLE relations (
  source TEXT NOT NULL,
  type   TEXT NOT NULL,
  target TEXT NOT NULL,
  id     TEXT NOT NULL,
  PRIMARY KEY (source, type, target)
) WITHOUT ROWID;
CREATE INDEX relations_target ON relations (target, type);

-- The newest outcome of each test by place, seen (`witnessed`) or reported. A place is a worktree, '' the default branch.
-- `called` is what people call it, the bare function; `greened_by` the task in which a failing test began to pass.
CREATE TABLE tests (
  org        TEXT NOT NULL,
  project    TEXT NOT NULL,
  name       TEXT NOT NULL,
  place      TEXT NOT NULL,
  witnessed  INTEGER NOT NULL,
  called     TEXT NOT NULL,
  passed     INTEGER NOT NULL,
  flaky      INTEGER NOT NULL,
  tree       TEXT NOT NULL,
  greened_by TEXT NOT NULL,
  at         INTEGER NOT NULL,
  event_id   TEXT NOT NULL,
  PRIMARY KEY (org, project, name, place, witnessed)
) WITHOUT ROWID;
CREATE INDEX tests_called ON tests (org, project, called);
CREATE INDEX tests_event ON tests (event_id);

CREATE TABLE uses (
  unit_id  TEXT NOT NULL,
  task_key TEXT NOT NULL,
  handed   INTEGER NOT NULL,
  used     INTEGER NOT NULL,
  credited INTEGER NOT NULL,
  blamed   INTEGER NOT NULL,
  PRIMARY KEY (unit_id, task_key)
) WITHOUT ROWID;
CREATE INDEX uses_task ON uses (task_key);
CREATE INDEX uses_used ON uses (task_key, unit_id) WHERE used;

-- Code rules that patches taught (M21). The id is that of the event that learned the rule; `project_id` is the key of
-- the project's scope; `before_pattern` and `after_pattern` are all that a rule is.
CREATE TABLE memory_code_rules (
  id                       TEXT PRIMARY KEY,
  project_id               TEXT NOT NULL DEFAULT 'global',
  name                     TEXT NOT NULL,
  description              TEXT NOT NULL DEFAULT '',
  category                 TEXT NOT NULL,
  before_pattern           TEXT NOT NULL,
  after_pattern            TEXT NOT NULL,
  pattern_type             TEXT NOT NULL DEFAULT 'literal',
  languages                TEXT NOT NULL DEFAULT '["python"]',
  confidence               REAL NOT NULL DEFAULT 0.5,
  observation_count        INTEGER NOT NULL DEFAULT 1,
  success_count            INTEGER NOT NULL DEFAULT 0,
  failure_count            INTEGER NOT NULL DEFAULT 0,
  min_confidence_threshold REAL NOT NULL DEFAULT 0.3,
  promotion_threshold      REAL NOT NULL DEFAULT 0.8,
  created_at               INTEGER NOT NULL,
  updated_at               INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX code_rules_project ON memory_code_rules (project_id);
CREATE INDEX code_rules_category ON memory_code_rules (category);
CREATE INDEX code_rules_confidence ON memory_code_rules (confidence DESC);
