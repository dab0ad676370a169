
-- Beside the tables of SQLite.
-- How far the files were read: `digest` covers every line up to `size`, `stamp` is what the file system says of the file.
CREATE TABLE journals (path TEXT PRIMARY KEY, size INTEGER NOT NULL, digest TEXT NOT NULL, stamp TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE writers (writer TEXT PRIMARY KEY, lamport INTEGER NOT NULL, seen TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE broken (place TEXT PRIMARY KEY, problem TEXT NOT NULL) WITHOUT ROWID;
-- The writers that this folder has been; a copied folder has another `place`.
CREATE TABLE own (number INTEGER PRIMARY KEY, writer TEXT NOT NULL UNIQUE, lamport INTEGER NOT NULL, place TEXT NOT NULL);
CREATE TABLE replica (floor INTEGER NOT NULL);
INSERT INTO replica (floor) VALUES (0);
