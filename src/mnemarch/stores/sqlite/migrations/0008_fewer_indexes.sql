-- Every index costs each write a page. New units come all the time, and are found in their scope. What is live has an index
-- of its own.
DROP INDEX events_type;
CREATE INDEX events_type ON events (type, position)
WHERE type NOT IN ('logged', 'recalled', 'graph.changed', 'unit.remembered');
DROP INDEX units_scope;
CREATE INDEX units_past ON units (scope_key, id) WHERE NOT live;
