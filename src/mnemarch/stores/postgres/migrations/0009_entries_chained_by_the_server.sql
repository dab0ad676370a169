-- Who acts in a transaction, and for which tenants. On Citus only SET LOCAL reaches the workers, and each has to be a
-- statement of its own; elsewhere set_config does the same for a tenth of the time.
CREATE FUNCTION act_as(acting_role text, org_tenant text, own_tenant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('citus.propagate_set_commands', true) = 'local' THEN
    EXECUTE format('SET LOCAL ROLE %I', acting_role);
    EXECUTE format('SET LOCAL mnemarch.org = %L', org_tenant);
    EXECUTE format('SET LOCAL mnemarch.project = %L', own_tenant);
    EXECUTE format('SET LOCAL mnemarch.tenants = %L', org_tenant || ',' || own_tenant);
  ELSE
    PERFORM set_config('role', acting_role, true), set_config('mnemarch.org', org_tenant, true),
      set_config('mnemarch.project', own_tenant, true), set_config('mnemarch.tenants', org_tenant || ',' || own_tenant, true);
  END IF;
END $$;

-- When followers of a stream were last told of a commit, in microseconds.
ALTER TABLE streams ADD COLUMN told_at bigint NOT NULL DEFAULT 0;

-- Adds entries without effect at the end of a stream: numbers, chains and places them, so that nobody waits for a client
-- while the stream is locked. Gives where it ended before. Whether followers are to be told is left in mnemarch.news.
CREATE FUNCTION append_entries(acting_role text, org_tenant text, own_tenant text, of_org text, of_project text, lock_ms text,
  quiet_us bigint, entries json, OUT last_seq bigint, OUT last_hash bytea, OUT last_position bigint) LANGUAGE plpgsql AS $$
DECLARE
  entry record;
  stream_end streams%ROWTYPE;
  now_us bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
  PERFORM act_as(acting_role, org_tenant, own_tenant), set_config('lock_timeout', lock_ms, true),
    set_config('synchronous_commit', 'off', true);
  -- A queue before the row that is the lock: of all who wait for a row, each commit wakes every one.
  PERFORM pg_advisory_xact_lock(hashtextextended(own_tenant, 0));
  LOOP
    SELECT * INTO stream_end FROM streams WHERE tenant = own_tenant AND writer = '' FOR NO KEY UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO streams (tenant, org, project) VALUES (own_tenant, of_org, of_project) ON CONFLICT DO NOTHING;
  END LOOP;
  last_seq := stream_end.seq;
  last_hash := stream_end.hash;
  last_position := stream_end.position;
  FOR entry IN SELECT * FROM json_to_recordset(entries) AS e (before text, after text, id text, type text, actor text, scope text,
    scope_key text, session text, subject text, occurred_at bigint, recorded_at bigint, body text, salt text, payload_hash text)
  LOOP
    stream_end.seq := stream_end.seq + 1;
    stream_end.position := stream_end.position + 1;
    stream_end.hash := sha256(stream_end.hash || convert_to(entry.before || stream_end.seq || entry.after, 'UTF8'));
    INSERT INTO events (tenant, position, seq, id, type, actor, scope, scope_key, session, subject, occurred_at, recorded_at,
      body, salt, payload_hash, hash)
    VALUES (own_tenant, stream_end.position, stream_end.seq, entry.id, entry.type, entry.actor, entry.scope, entry.scope_key,
      entry.session, entry.subject, entry.occurred_at, entry.recorded_at,
      entry.body, decode(entry.salt, 'hex'), decode(entry.payload_hash, 'hex'), stream_end.hash);
  END LOOP;
  PERFORM set_config('mnemarch.news', CASE WHEN now_us - stream_end.told_at >= quiet_us THEN own_tenant ELSE '' END, false);
  UPDATE streams SET seq = stream_end.seq, hash = stream_end.hash, position = stream_end.position,
    told_at = CASE WHEN now_us - told_at >= quiet_us THEN now_us ELSE told_at END
  WHERE tenant = own_tenant AND writer = '';
END $$;
