What only a folder of files says: some tables say how far its files were read.

-- append: Add one event. No position is given twice, also when all events are read anew.
INSERT INTO events (position, stream, seq, id, type, actor, scope, scope_key, session, subject, key, occurred_at, recorded_at, body, salt,
  payload_hash, hash, clock)
VALUES (max((SELECT coalesce(max(position), 0) FROM events), (SELECT floor FROM replica)) + 1, :stream, :seq, :id, :type, :actor, :scope,
  :scope_key, :session, :subject, :key, :occurred_at, :recorded_at, :body, :salt, :payload_hash, :hash, :clock)
RETURNING position;

-- event_ids: What is known.
SELECT id FROM events;

-- journals: How far each file of the log was read.
SELECT path, size, digest, stamp FROM journals;

-- put_journal: That a file was read so far.
INSERT INTO journals (path, size, digest, stamp) VALUES (:path, :size, :digest, :stamp)
ON CONFLICT (path) DO UPDATE SET size = excluded.size, digest = excluded.digest, stamp = excluded.stamp;

-- clocks: The last Lamport time of each writer, and what it had seen of the others.
SELECT writer, lamport, seen FROM writers;

-- put_clock: The same for one.
INSERT INTO writers (writer, lamport, seen) VALUES (:writer, :lamport, :seen)
ON CONFLICT (writer) DO UPDATE SET lamport = excluded.lamport, seen = excluded.seen;

-- own_writers: The writers that this folder on this machine has been, the newest first, and how far each had come.
SELECT writer, lamport FROM own WHERE place = :place ORDER BY number DESC;

-- put_own: That one of them has come so far.
INSERT INTO own (writer, lamport, place) VALUES (:writer, :lamport, :place)
ON CONFLICT (writer) DO UPDATE SET lamport = max(own.lamport, excluded.lamport);

-- broken: The lines that were refused, and why.
SELECT place, problem FROM broken ORDER BY place;

-- put_broken: One of them.
INSERT INTO broken (place, problem) VALUES (:place, :problem) ON CONFLICT DO NOTHING;

-- epoch: A number that changes when everything is read anew.
SELECT floor FROM replica;

-- begin_epoch: Positions go on after the last one.
UPDATE replica SET floor = max(floor + 1, (SELECT coalesce(max(position), 0) FROM events));

-- clear_streams: What is about to be read anew: the ends of streams.
DELETE FROM streams;

-- clear_journals: The same for how far files were read.
DELETE FROM journals;

-- clear_clocks: The same for the times of writers.
DELETE FROM writers;

-- clear_broken: The same for lines that were refused.
DELETE FROM broken;
