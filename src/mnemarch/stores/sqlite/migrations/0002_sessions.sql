-- Which conversation a unit came from, and its turn there: what stands next to what (A1).
ALTER TABLE units ADD COLUMN session TEXT;
ALTER TABLE units ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;

UPDATE units SET session = json_array(
  json_extract(body, '$.provenance[0].scope[0]'),
  json_extract(body, '$.provenance[0].scope[1]'),
  json_extract(body, '$.provenance[0].session'))
WHERE json_extract(body, '$.provenance[0].session') IS NOT NULL;

UPDATE units SET turn = counted.turn
FROM (SELECT number, row_number() OVER (PARTITION BY session ORDER BY number) AS turn FROM units) AS counted
WHERE units.number = counted.number AND units.session IS NOT NULL;

CREATE INDEX units_session ON units (session, turn) WHERE session IS NOT NULL;
