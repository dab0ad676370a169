-- The tenants of a transaction by name, one by one: of tables that are partitioned by tenant, the planner then reads no
-- partition but theirs. It can't look into an array that a function gives.
DO $$
DECLARE name text; tenant text;
BEGIN
  FOREACH name IN ARRAY ARRAY['streams', 'events', 'units', 'citations', 'links', 'link_units', 'relations', 'tests', 'uses',
    'memory_code_rules'] LOOP
    tenant := CASE name WHEN 'memory_code_rules' THEN 'project_id' ELSE 'tenant' END;
    EXECUTE format('ALTER POLICY tenant ON %I USING '
      '(%I IN (current_setting(''mnemarch.org'', true), current_setting(''mnemarch.project'', true)))', name, tenant);
  END LOOP;
END $$;
