What only SQLite says. A query of this name takes the place of the shared one.

-- size: The bytes of the database.
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size();
