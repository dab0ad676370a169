What PostgreSQL is asked by its own search index. `:tenant` is whose index it is.

-- head: How far the index reaches, by which version of our words, and what it says of itself.
SELECT version, position, about FROM search_sets WHERE tenant = :tenant;

-- new_set: Have a row to lock.
INSERT INTO search_sets (tenant, version, position, about) VALUES (:tenant, :version, '0', '{}') ON CONFLICT DO NOTHING;

-- alone: Be the only one who writes to the index; no row if another is.
SELECT version, position, about FROM search_sets WHERE tenant = :tenant FOR UPDATE SKIP LOCKED;

-- reach: Say how far the index reaches now.
UPDATE search_sets SET version = :version, position = :position, about = :about WHERE tenant = :tenant;

-- drop_texts: Begin anew: the texts.
DELETE FROM search_texts WHERE tenant = :tenant;

-- drop_words: Begin anew: the counts.
DELETE FROM search_words WHERE tenant = :tenant;

-- take_out: Take some texts out, and see what is to be counted no more.
DELETE FROM search_texts WHERE tenant = :tenant AND id IN (:ids) RETURNING sketch;

-- forget: Have what was erased at the org's level leave the indexes of its other projects.
SELECT search_forget(CAST(:ids AS TEXT[]));

-- put: Many texts, given as JSON: one statement costs a fraction of many.
INSERT INTO search_texts (tenant, id, scope_key, state, kind, domain, place, words, sketch)
SELECT :tenant, id, scope_key, state, kind, domain, place, CAST(words AS BIGINT[]), sketch
FROM json_to_recordset(CAST(:rows AS JSON)) AS t (id text, scope_key text, state text, kind text, domain text, place text, words text, sketch text);

-- count: Count words in more texts, or in fewer.
INSERT INTO search_words (tenant, scope_key, word, units)
SELECT :tenant, scope_key, word, units
FROM unnest(CAST(:scopes AS TEXT[]), CAST(:words AS TEXT[]), CAST(:counts AS INTEGER[])) AS counted (scope_key, word, units)
ON CONFLICT (tenant, scope_key, word) DO UPDATE SET units = search_words.units + excluded.units;

-- forget_words: Forget those of some words that are in no text any more.
DELETE FROM search_words WHERE tenant = :tenant AND word IN (:words) AND units <= 0;

-- frequencies: In how many texts of each scope these words are.
SELECT scope_key, word, units FROM search_words WHERE tenant = :tenant AND scope_key IN (:scopes) AND word IN (:words);

-- words_from: Words of some scopes that begin so, the most frequent first.
SELECT word FROM search_words WHERE tenant = :tenant AND scope_key IN (:scopes) AND word >= :low AND word < :high
GROUP BY word ORDER BY sum(units) DESC, word LIMIT :limit;

-- candidates: Texts with one of the wanted words, of each state those first whose words weigh most in the question.
SELECT search_candidates(CAST(:wanted AS BIGINT[]), CAST(:asked AS BIGINT[]), CAST(:weights AS DOUBLE PRECISION[]), CAST(:kinds AS TEXT[]),
  CAST(:domains AS TEXT[]), :looked_at, :most);

-- at: The texts at some turns of sessions.
SELECT sketch FROM search_texts WHERE tenant = :tenant AND place IN (:names);

-- of: The texts of some units.
SELECT sketch FROM search_texts WHERE tenant = :tenant AND id IN (:names);
