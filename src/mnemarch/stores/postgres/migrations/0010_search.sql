-- The search index of the database: how far a tenant's reaches, in how many of its texts each word is, and the texts by their
-- words. A number stands for a word in a scope, so that no other tenant's texts are looked at. A row with no word counts all
-- texts of its scope. What lies at the org's level is in the index of each of its projects.
CREATE TABLE search_sets (
  tenant   text COLLATE "C" PRIMARY KEY,
  version  integer NOT NULL,
  position text COLLATE "C" NOT NULL,
  about    text COLLATE "C" NOT NULL
);
CREATE TABLE search_words (
  tenant    text COLLATE "C" NOT NULL,
  scope_key text COLLATE "C" NOT NULL,
  word      text COLLATE "C" NOT NULL,
  units     integer NOT NULL,
  PRIMARY KEY (tenant, scope_key, word)
);
CREATE TABLE search_texts (
  tenant    text COLLATE "C" NOT NULL,
  id        text COLLATE "C" NOT NULL,
  scope_key text COLLATE "C" NOT NULL,
  state     text COLLATE "C" NOT NULL,
  kind      text COLLATE "C" NOT NULL,
  domain    text COLLATE "C" NOT NULL,
  place     text COLLATE "C",
  words     bigint[] NOT NULL,
  sketch    text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX search_texts_place ON search_texts (tenant, place) WHERE place IS NOT NULL;
CREATE INDEX search_texts_words ON search_texts USING gin (words);

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['search_sets', 'search_words', 'search_texts'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON %I TO mnemarch_app USING '
      '(tenant IN (current_setting(''mnemarch.org'', true), current_setting(''mnemarch.project'', true)))', name);
    EXECUTE format('CREATE POLICY operator ON %I TO mnemarch_operator USING (true)', name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO mnemarch_app, mnemarch_operator', name);
  END LOOP;
END $$;

-- Row-level security keeps an operator that might tell of other rows from using an index. So this function searches with the
-- rights of its owner, and asks by itself for the tenant that the transaction names, and for no other.
CREATE FUNCTION search_candidates(wanted bigint[], asked bigint[], weights double precision[], kinds text[], domains text[],
  looked_at integer, most integer) RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT sketch FROM (
    SELECT sketch, row_number() OVER (PARTITION BY state ORDER BY weight DESC, id DESC) AS place FROM (
      SELECT id, state, sketch, (SELECT sum(a.weight) FROM unnest(asked, weights) AS a (word, weight) WHERE a.word = ANY (words))
        AS weight
      FROM search_texts
      WHERE tenant = current_setting('mnemarch.project', true) AND words && wanted
        AND (kinds = '{}' OR kind = ANY (kinds)) AND (domains = '{}' OR domain = ANY (domains))
      LIMIT looked_at) AS alike) AS ordered
  WHERE place <= most
$$;

-- What was erased at the org's level leaves the indexes of all its projects: those that hold it are dropped, and made anew by
-- whoever asks there next. Nobody can drop an index by the id of a unit that is not the org's.
CREATE FUNCTION search_forget(ids text[]) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  WITH holders AS (
    SELECT t.tenant FROM search_texts t
    WHERE t.id IN (SELECT id FROM units WHERE tenant = current_setting('mnemarch.org', true) AND id = ANY (ids))
      AND t.tenant IN (SELECT tenant FROM streams
        WHERE org = (SELECT org FROM streams WHERE tenant = current_setting('mnemarch.org', true) AND writer = ''))
      AND t.tenant <> current_setting('mnemarch.project', true)
  ), texts AS (DELETE FROM search_texts WHERE tenant IN (SELECT tenant FROM holders)
  ), words AS (DELETE FROM search_words WHERE tenant IN (SELECT tenant FROM holders))
  DELETE FROM search_sets WHERE tenant IN (SELECT tenant FROM holders)
$$;

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['search_candidates', 'search_forget'] LOOP
    EXECUTE format('ALTER FUNCTION %I SET search_path = %I, pg_temp', name, current_schema());
    EXECUTE format('REVOKE ALL ON FUNCTION %I FROM PUBLIC', name);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %I TO mnemarch_app, mnemarch_operator', name);
  END LOOP;
END $$;
