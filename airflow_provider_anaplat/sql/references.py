"""Which rows of other tables a DELETE would take along, by each database's own catalogue."""

from __future__ import annotations

from airflow_provider_anaplat.sql.session import PARAMETER, Reached, Session

__all__ = [
    "reached_in_mysql",
    "reached_in_postgresql",
    "reached_in_sqlite",
]

# A DELETE reaches all partitions and heirs of a table, and foreign keys may refer to each of them.
_IN_POSTGRESQL = f"""
WITH RECURSIVE target(oid) AS (SELECT CAST(to_regclass({PARAMETER}) AS oid)),
family(oid) AS (
  SELECT oid FROM target
  UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN family f ON i.inhparent = f.oid
)
SELECT DISTINCT CAST(CAST(c.conrelid AS regclass) AS text),
  'foreign key ' || COALESCE(p.conname, c.conname) || ', ON DELETE ' ||
  CASE c.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'SET DEFAULT' END
FROM pg_catalog.pg_constraint c LEFT JOIN pg_catalog.pg_constraint p ON p.oid = c.conparentid
WHERE c.contype = 'f' AND c.confdeltype NOT IN ('a', 'r')
  AND c.confrelid IN (SELECT oid FROM family) AND c.conrelid NOT IN (SELECT oid FROM family)
UNION ALL
SELECT CAST(CAST(c.oid AS regclass) AS text), 'inherits from it'
FROM pg_catalog.pg_class c JOIN family f ON f.oid = c.oid
WHERE NOT c.relispartition AND c.oid NOT IN (SELECT oid FROM target)
UNION ALL
SELECT 'the table behind it', 'it is a view'
FROM pg_catalog.pg_class c JOIN target t ON t.oid = c.oid
WHERE c.relkind = 'v' AND NOT EXISTS (
  SELECT 1 FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND g.tgtype & 72 = 72 -- INSTEAD OF DELETE
)
ORDER BY 1, 2
"""

_IN_MYSQL = f"""
SELECT r.constraint_schema, r.table_name, r.unique_constraint_schema, r.referenced_table_name,
  CONCAT('foreign key ', r.constraint_name, ', ON DELETE ', r.delete_rule)
FROM information_schema.referential_constraints r
WHERE r.unique_constraint_schema = COALESCE({PARAMETER}, DATABASE()) AND r.referenced_table_name = {PARAMETER}
  AND r.delete_rule NOT IN ('NO ACTION', 'RESTRICT')
ORDER BY 1, 2, 5
"""
_VIEW_IN_MYSQL = (
    "SELECT 'the table behind it', 'it is a view' FROM information_schema.tables t "
    f"WHERE t.table_schema = COALESCE({PARAMETER}, DATABASE()) AND t.table_name = {PARAMETER} "
    "AND t.table_type = 'VIEW'"
)

# If the connection does not enforce foreign keys, they do nothing.
_IN_SQLITE = f"""
SELECT DISTINCT m.name, 'a foreign key, ON DELETE ' || k.on_delete
FROM {{catalog}} m, pragma_foreign_key_list(m.name, {PARAMETER}) k, pragma_foreign_keys enforced
WHERE enforced.foreign_keys = 1 AND m.type = 'table' AND k."table" = {PARAMETER} COLLATE NOCASE
  AND m.name <> {PARAMETER} COLLATE NOCASE AND k.on_delete NOT IN ('NO ACTION', 'RESTRICT')
ORDER BY 1, 2
"""


def reached_in_postgresql(session: Session, schema: str | None, table: str) -> Reached:
    """Return each other table that a DELETE changes, and why."""
    name = session.driver.dialect.qualified(schema, table)
    return [(other, why) for other, why in session.rows(_IN_POSTGRESQL, [name])]


def reached_in_mysql(session: Session, schema: str | None, table: str) -> Reached:
    """Return each other table that a DELETE changes, and why; the server shows those that the user may see."""
    found = session.rows(_IN_MYSQL, [schema, table])
    # Compared here: the server compares these names without regard to case, even if case tells tables apart.
    reached = [
        (f"{child_schema}.{child}", why)
        for child_schema, child, parent_schema, parent, why in found
        if (child_schema, child) != (parent_schema, parent)
    ]
    return reached + [(other, why) for other, why in session.rows(_VIEW_IN_MYSQL, [schema, table])]


def reached_in_sqlite(session: Session, schema: str | None, table: str) -> Reached:
    """Return each other table that a DELETE changes, and why."""
    catalog = session.driver.dialect.qualified(schema or "main", "sqlite_master")
    query = _IN_SQLITE.format(catalog=catalog)
    return [(other, why) for other, why in session.rows(query, [schema or "main", table, table])]
