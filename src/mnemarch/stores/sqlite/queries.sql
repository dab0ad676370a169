What only SQLite says. A query of this name takes the place of the shared one.

-- size: The bytes of the database.
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size();

-- head: The end of one stream.
SELECT id, seq, hash FROM streams WHERE org = :org AND project = :project AND writer = :writer;

-- heads: The ends of all streams.
SELECT org, project, seq, hash, writer FROM streams;

-- new_stream: Begin a stream.
INSERT INTO streams (org, project, writer, seq, hash) VALUES (:org, :project, :writer, :seq, :hash) RETURNING id;

-- append: Add one event.
INSERT INTO events (stream, seq, id, type, actor, scope, scope_key, session, subject, key, occurred_at, recorded_at, body, salt, payload_hash, hash, clock)
VALUES (:stream, :seq, :id, :type, :actor, :scope, :scope_key, :session, :subject, :key, :occurred_at, :recorded_at, :body, :salt, :payload_hash, :hash,
  :clock)
RETURNING position;

-- event_for_key: The first event that an idempotency key stands for: two clones may each have used it.
SELECT * FROM entries WHERE scope_key = :scope_key AND actor = :actor AND key = :key ORDER BY position LIMIT 1;
