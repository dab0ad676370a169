-- A tenant is a project, or an org for what lies at its level; its name is the key of that scope. It comes first in every
-- key. Row-level security, forced, lets the application's role see the tenants that its transaction names, and no other.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['mnemarch_app', 'mnemarch_operator'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      BEGIN EXECUTE format('CREATE ROLE %I NOLOGIN', name); EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END;
    END IF;
  END LOOP;
END $$;
-- Whoever makes the tables may use them. PostgreSQL 16 and later don't let the maker of a role become it by itself.
DO $$
DECLARE able text := CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END;
BEGIN
  IF NOT pg_has_role(current_user, 'mnemarch_app', able) OR NOT pg_has_role(current_user, 'mnemarch_operator', able)
  THEN EXECUTE format('GRANT mnemarch_app, mnemarch_operator TO %I', current_user); END IF;
END $$;

CREATE TABLE store (
  id         text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  format     integer NOT NULL
);

-- One stream for each project, and one for each org, whose project is ''. To lock its row is to be its only writer.
-- Positions grow in the order of commits inside a stream. Who writes to two streams goes on after the later of both, so
-- that what follows from something else, in whichever stream, has the higher position.
CREATE TABLE streams (
  tenant   text COLLATE "C" PRIMARY KEY,
  org      text COLLATE "C" NOT NULL,
  project  text COLLATE "C" NOT NULL,
  seq      bigint NOT NULL DEFAULT 0,
  hash     bytea NOT NULL DEFAULT '',
  position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE events (
  tenant       text COLLATE "C" NOT NULL,
  position     bigint NOT NULL,
  seq          bigint NOT NULL,
  id           text COLLATE "C" NOT NULL,
  type         text COLLATE "C" NOT NULL,
  actor        text COLLATE "C" NOT NULL,
  scope        text COLLATE "C" NOT NULL,
  scope_key    text COLLATE "C" NOT NULL,
  session      text COLLATE "C",
  subject      text COLLATE "C",
  key          text COLLATE "C",
  occurred_at  bigint NOT NULL,
  recorded_at  bigint NOT NULL,
  body         text COLLATE "C",
  salt         bytea,
  payload_hash bytea NOT NULL,
  hash         bytea NOT NULL,
  PRIMARY KEY (tenant, position)
);
CREATE UNIQUE INDEX events_id ON events (tenant, id);
CREATE INDEX events_scope ON events (tenant, scope_key, position);
CREATE INDEX events_subject ON events (tenant, subject, position) WHERE subject IS NOT NULL;
CREATE INDEX events_recorded ON events (tenant, recorded_at);
CREATE INDEX events_type ON events (tenant, type, position) WHERE type NOT IN ('logged', 'recalled', 'graph.changed');
CREATE UNIQUE INDEX events_key ON events (tenant, scope_key, actor, key) WHERE key IS NOT NULL;

CREATE VIEW entries WITH (security_invoker = true) AS
SELECT e.position, e.seq, e.id, e.type, e.actor, e.scope, e.scope_key, e.session, e.subject, e.key, e.occurred_at,
  e.recorded_at, e.body, e.salt, e.payload_hash, e.hash, s.org, s.project
FROM events e LEFT JOIN streams s ON s.tenant = e.tenant;

CREATE TABLE units (
  tenant          text COLLATE "C" NOT NULL,
  id              text COLLATE "C" NOT NULL,
  scope_key       text COLLATE "C" NOT NULL,
  level           integer NOT NULL,
  kind            text COLLATE "C" NOT NULL,
  domain          text COLLATE "C" NOT NULL,
  status          text COLLATE "C" NOT NULL,
  live            boolean NOT NULL,
  canonical_key   text COLLATE "C",
  topic_key       text COLLATE "C",
  searchable_at   bigint NOT NULL,
  body            text COLLATE "C" NOT NULL,
  root            text COLLATE "C",
  place           integer,
  strength        integer,
  valid_to_commit text COLLATE "C",
  target          text COLLATE "C",
  session         text COLLATE "C",
  turn            integer NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX units_short ON units (tenant, substr(id, 25));
CREATE INDEX units_scope ON units (tenant, scope_key, id);
CREATE INDEX units_canonical ON units (tenant, canonical_key, id) WHERE canonical_key IS NOT NULL;
CREATE INDEX units_topic ON units (tenant, topic_key, status, id) WHERE live AND topic_key IS NOT NULL;
CREATE INDEX units_archived ON units (tenant, topic_key, id) WHERE status = 'archived' AND topic_key IS NOT NULL;
CREATE INDEX units_searchable ON units (tenant, searchable_at);
CREATE INDEX units_kind ON units (tenant, kind) WHERE live AND kind IN ('episode', 'skill');
CREATE INDEX units_session ON units (tenant, session, turn) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX units_in_force ON units (tenant, root) WHERE live AND root IS NOT NULL;
CREATE UNIQUE INDEX units_versions ON units (tenant, root, place) WHERE root IS NOT NULL;
CREATE INDEX units_decided ON units (tenant, scope_key, domain, strength, id) WHERE live AND root IS NOT NULL;
CREATE INDEX units_live ON units (tenant, scope_key, id, kind, domain) WHERE live;
CREATE INDEX units_guiding ON units (tenant, kind, scope_key, id, domain) WHERE live AND kind IN ('policy', 'anchor', 'core');
CREATE INDEX units_replaced ON units (tenant, scope_key, id)
WHERE status = 'deprecated' AND root IS NULL AND valid_to_commit IS NOT NULL;

CREATE TABLE citations (
  tenant  text COLLATE "C" NOT NULL,
  kind    text COLLATE "C" NOT NULL,
  ref     text COLLATE "C" NOT NULL,
  unit_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, kind, ref, unit_id)
);
CREATE INDEX citations_unit ON citations (tenant, unit_id);

CREATE TABLE links (
  tenant text COLLATE "C" NOT NULL,
  id     text COLLATE "C" NOT NULL,
  type   text COLLATE "C" NOT NULL,
  open   boolean NOT NULL,
  body   text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX links_short ON links (tenant, substr(id, 25));
CREATE INDEX links_open ON links (tenant, type, id) WHERE open;

CREATE TABLE link_units (
  tenant  text COLLATE "C" NOT NULL,
  unit_id text COLLATE "C" NOT NULL,
  link_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, unit_id, link_id)
);
CREATE INDEX link_units_link ON link_units (tenant, link_id, unit_id);

CREATE TABLE relations (
  tenant text COLLATE "C" NOT NULL,
  source text COLLATE "C" NOT NULL,
  type   text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  id     text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, source, type, target)
);
CREATE INDEX relations_target ON relations (tenant, target, type);

CREATE TABLE tests (
  tenant     text COLLATE "C" NOT NULL,
  org        text COLLATE "C" NOT NULL,
  project    text COLLATE "C" NOT NULL,
  name       text COLLATE "C" NOT NULL,
  place      text COLLATE "C" NOT NULL,
  witnessed  boolean NOT NULL,
  called     text COLLATE "C" NOT NULL,
  passed     boolean NOT NULL,
  flaky      boolean NOT NULL,
  tree       text COLLATE "C" NOT NULL,
  greened_by text COLLATE "C" NOT NULL,
  at         bigint NOT NULL,
  event_id   text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, name, place, witnessed)
);
CREATE INDEX tests_called ON tests (tenant, called);
CREATE INDEX tests_event ON tests (tenant, event_id);

CREATE TABLE uses (
  tenant   text COLLATE "C" NOT NULL,
  unit_id  text COLLATE "C" NOT NULL,
  task_key text COLLATE "C" NOT NULL,
  handed   boolean NOT NULL,
  used     boolean NOT NULL,
  credited boolean NOT NULL,
  blamed   boolean NOT NULL,
  PRIMARY KEY (tenant, unit_id, task_key)
);
CREATE INDEX uses_task ON uses (tenant, task_key);
CREATE INDEX uses_used ON uses (tenant, task_key, unit_id) WHERE used;

-- Code rules that patches taught (M21). Their project is their tenant.
CREATE TABLE memory_code_rules (
  id                       uuid PRIMARY KEY,
  project_id               text COLLATE "C" NOT NULL DEFAULT 'global',
  name                     text COLLATE "C" NOT NULL,
  description              text COLLATE "C" NOT NULL DEFAULT '',
  category                 text COLLATE "C" NOT NULL,
  before_pattern           text COLLATE "C" NOT NULL,
  after_pattern            text COLLATE "C" NOT NULL,
  pattern_type             text COLLATE "C" NOT NULL DEFAULT 'literal',
  languages                json NOT NULL DEFAULT '["python"]',
  confidence               double precision NOT NULL DEFAULT 0.5,
  observation_count        integer NOT NULL DEFAULT 1,
  success_count            integer NOT NULL DEFAULT 0,
  failure_count            integer NOT NULL DEFAULT 0,
  min_confidence_threshold double precision NOT NULL DEFAULT 0.3,
  promotion_threshold      double precision NOT NULL DEFAULT 0.8,
  created_at               bigint NOT NULL,
  updated_at               bigint NOT NULL
);
CREATE INDEX code_rules_project ON memory_code_rules (project_id);
CREATE INDEX code_rules_category ON memory_code_rules (category);
CREATE INDEX code_rules_confidence ON memory_code_rules (confidence DESC);

DO $$
DECLARE name text; tenant text;
BEGIN
  FOREACH name IN ARRAY ARRAY['streams', 'events', 'units', 'citations', 'links', 'link_units', 'relations', 'tests', 'uses',
    'memory_code_rules'] LOOP
    tenant := CASE name WHEN 'memory_code_rules' THEN 'project_id' ELSE 'tenant' END;
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON %I TO mnemarch_app USING '
      '(%I = ANY (string_to_array(current_setting(''mnemarch.tenants'', true), '','')))', name, tenant);
    EXECUTE format('CREATE POLICY operator ON %I TO mnemarch_operator USING (true)', name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO mnemarch_app, mnemarch_operator', name);
  END LOOP;
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO mnemarch_app, mnemarch_operator', current_schema());
END $$;
GRANT SELECT ON store, entries TO mnemarch_app, mnemarch_operator;
