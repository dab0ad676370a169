What PostgreSQL is asked about vectors. `@pgvector` is the schema that pgvector is in; `@tenant`, `@embedder` and `@dim` stand in
the text itself, since the planner must see that an index for one tenant fits.

-- tables: Whether the tables are there, whether pgvector could be, and where it is.
SELECT to_regclass('vectors') IS NOT NULL,
  EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector'),
  (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'),
  (SELECT extversion FROM pg_extension WHERE extname = 'vector');

-- extension: Have pgvector in this database, in a schema that stays.
DO $$ BEGIN
  IF to_regnamespace('public') IS NOT NULL AND has_schema_privilege('public', 'CREATE')
  THEN CREATE EXTENSION IF NOT EXISTS vector SCHEMA public; ELSE CREATE EXTENSION IF NOT EXISTS vector; END IF;
END $$;

-- schema: How far each tenant's vectors by each embedder reach, and who makes them; and the vectors, as whole numbers from -127 to 127.
CREATE TABLE IF NOT EXISTS vector_sets (
  tenant      text COLLATE "C" NOT NULL,
  embedder    text COLLATE "C" NOT NULL,
  name        text COLLATE "C" NOT NULL,
  born        text COLLATE "C" NOT NULL,
  position    numeric NOT NULL DEFAULT 0,
  event       text COLLATE "C" NOT NULL DEFAULT '',
  complete    boolean NOT NULL DEFAULT false,
  followed_at timestamptz NOT NULL DEFAULT now(),
  holder      text COLLATE "C" NOT NULL DEFAULT '',
  held_until  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant, embedder)
);
CREATE TABLE IF NOT EXISTS vectors (
  tenant    text COLLATE "C" NOT NULL,
  embedder  text COLLATE "C" NOT NULL,
  id        text COLLATE "C" NOT NULL,
  text_key  text COLLATE "C" NOT NULL DEFAULT '',
  scope_key text COLLATE "C" NOT NULL DEFAULT '',
  state     text COLLATE "C" NOT NULL DEFAULT '',
  kind      text COLLATE "C" NOT NULL DEFAULT '',
  domain    text COLLATE "C" NOT NULL DEFAULT '',
  vector    @pgvector.halfvec,
  erased    boolean NOT NULL DEFAULT false,
  PRIMARY KEY (tenant, embedder, id)
);
CREATE INDEX IF NOT EXISTS vectors_scope ON vectors (tenant, embedder, scope_key) WHERE vector IS NOT NULL;
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['vector_sets', 'vectors'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('DROP POLICY IF EXISTS tenant ON %I', name);
    EXECUTE format('DROP POLICY IF EXISTS operator ON %I', name);
    EXECUTE format('CREATE POLICY tenant ON %I TO mnemarch_app USING '
      '(tenant = ANY (string_to_array(current_setting(''mnemarch.tenants'', true), '','')))', name);
    EXECUTE format('CREATE POLICY operator ON %I TO mnemarch_operator USING (true)', name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO mnemarch_app, mnemarch_operator', name);
  END LOOP;
END $$;

-- head: How far the vectors of a tenant reach.
SELECT born, position, event, complete FROM vector_sets WHERE tenant = :tenant AND embedder = :embedder;

-- new_set: Have a row to say so.
INSERT INTO vector_sets (tenant, embedder, name, born) VALUES (:tenant, :embedder, :name, :born) ON CONFLICT DO NOTHING;

-- hold: Be the one who makes these vectors, if nobody is, or who was has not been heard of for a while.
UPDATE vector_sets SET holder = :holder, held_until = now() + make_interval(secs => :held_s)
WHERE tenant = :tenant AND embedder = :embedder AND (holder = '' OR held_until < now()) RETURNING 1;

-- let_go: Let others make them.
UPDATE vector_sets SET holder = '' WHERE tenant = :tenant AND embedder = :embedder AND holder = :holder;

-- begin_anew: Forget how far they reach.
UPDATE vector_sets SET born = :born, position = 0, event = '', complete = false WHERE tenant = :tenant AND embedder = :embedder;

-- drop_vectors: The vectors of a tenant; what was erased stays known.
DELETE FROM vectors WHERE tenant = :tenant AND embedder = :embedder AND NOT erased;

-- reach: Say how far they reach now, unless they were begun anew.
UPDATE vector_sets SET position = :position, event = :event, complete = complete OR :complete, followed_at = now(),
  held_until = greatest(held_until, now() + make_interval(secs => :held_s))
WHERE tenant = :tenant AND embedder = :embedder AND born = :born RETURNING 1;

-- put: A unit with its vector. One whose text has a vector keeps it; an erased one stays erased.
INSERT INTO vectors (tenant, embedder, id, text_key, scope_key, state, kind, domain, vector)
VALUES (:tenant, :embedder, :id, :text_key, :scope_key, :state, :kind, :domain, CAST(CAST(:vector AS text) AS @pgvector.halfvec))
ON CONFLICT (tenant, embedder, id) DO UPDATE SET
  scope_key = excluded.scope_key, state = excluded.state, kind = excluded.kind, domain = excluded.domain,
  vector = CASE WHEN vectors.text_key = excluded.text_key THEN vectors.vector ELSE excluded.vector END,
  text_key = excluded.text_key
WHERE NOT vectors.erased;

-- leave: Units that rose to the org are no longer their project's.
DELETE FROM vectors WHERE tenant = :tenant AND embedder = :embedder AND id IN (:ids) AND NOT erased;

-- known: The texts that have a vector, among these units.
SELECT tenant, id, text_key FROM vectors
WHERE tenant IN (:tenants) AND embedder = :embedder AND id IN (:ids) AND vector IS NOT NULL;

-- erase_rows: Overwrite the vectors of these units, of whichever embedder.
UPDATE vectors SET vector = NULL, text_key = '', scope_key = '', erased = true WHERE id IN (:ids);

-- erase_later: And let nobody who has read their texts save them now.
INSERT INTO vectors (tenant, embedder, id, erased)
SELECT DISTINCT t, s.embedder, i, true
FROM vector_sets s, unnest(array_append(CAST(:tenants AS text[]), s.tenant)) t, unnest(CAST(:ids AS text[])) i
ON CONFLICT (tenant, embedder, id) DO UPDATE SET vector = NULL, text_key = '', scope_key = '', erased = true;

-- tune: An index goes on until enough of what it finds is allowed; the plan is made for these very values.
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', :ef_search, true),
  set_config('plan_cache_mode', 'force_custom_plan', true);

-- nearest: The nearest units of one tenant among those allowed.
SELECT id, 1 - (CAST(vector AS @pgvector.halfvec(@dim)) OPERATOR(@pgvector.<=>) CAST(CAST(:vector AS text) AS @pgvector.halfvec(@dim)))
FROM vectors WHERE tenant = '@tenant' AND embedder = '@embedder' AND vector IS NOT NULL
  AND @within
ORDER BY CAST(vector AS @pgvector.halfvec(@dim)) OPERATOR(@pgvector.<=>) CAST(CAST(:vector AS text) AS @pgvector.halfvec(@dim))
LIMIT :limit;

-- compared: How near these units are.
SELECT id, 1 - (vector OPERATOR(@pgvector.<=>) CAST(CAST(:vector AS text) AS @pgvector.halfvec))
FROM vectors WHERE tenant IN (:tenants) AND embedder = :embedder AND id IN (:ids) AND vector IS NOT NULL;

-- count: How many units have a vector.
SELECT count(*) FROM vectors WHERE tenant IN (:tenants) AND embedder = :embedder AND vector IS NOT NULL;

-- is_indexed: Whether a tenant's index is there, and whole.
SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass(:name);

-- dim: How long the vectors of a tenant are.
SELECT @pgvector.vector_dims(vector) FROM vectors
WHERE tenant = :tenant AND embedder = :embedder AND vector IS NOT NULL LIMIT 1;

-- alone: One process makes an index, the others leave it to that one.
SELECT pg_try_advisory_lock(hashtext('@name'));

-- drop_index: What an interrupted process left.
DROP INDEX CONCURRENTLY IF EXISTS @name;

-- new_index: The index of one tenant; writers go on meanwhile.
CREATE INDEX CONCURRENTLY @name ON vectors USING hnsw
((CAST(vector AS @pgvector.halfvec(@dim))) @pgvector.halfvec_cosine_ops) WHERE tenant = '@tenant' AND embedder = '@embedder';

-- analyse: Let the planner know how many units a scope has: for few it compares them one by one.
ANALYZE vectors;
