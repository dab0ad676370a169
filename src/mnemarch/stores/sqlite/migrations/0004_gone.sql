-- What was rejected or replaced is looked up by its text when the same is said again (R5).
CREATE INDEX units_gone ON units (canonical_key) WHERE NOT live AND canonical_key IS NOT NULL;
