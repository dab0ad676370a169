What only SQLite says. A query of this name takes the place of the shared one.

-- size: The bytes of the database.
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size();

-- tests_cited: Beginning with the tests: most units of a scope cite none, and SQLite would look at each of them.
SELECT DISTINCT c.ref FROM citations c CROSS JOIN units u ON u.id = c.unit_id
WHERE c.kind = 'test' AND u.live AND u.scope_key IN (:scope_keys) ORDER BY c.ref;

-- accounts_in: The live episodes or skills of some scopes, newest first, without a look at all other units.
SELECT id, body FROM units INDEXED BY units_kind
WHERE live AND kind IN ('episode', 'skill') AND kind = :kind AND scope_key IN (:scope_keys)
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
  AND (CAST(:level AS INTEGER) IS NULL OR level = :level)
  AND (CAST(:domain AS TEXT) IS NULL OR domain = :domain)
  AND id < :before
ORDER BY id DESC LIMIT :limit;

-- tests_called: The newest outcomes of some tests by what people call them, without a look at all others of the project.
SELECT name, place, witnessed, passed, flaky, tree, greened_by, at, event_id FROM tests INDEXED BY tests_called
WHERE org = :org AND project = :project AND called IN (:names) ORDER BY name, place, witnessed;
