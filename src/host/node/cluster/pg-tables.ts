/** The newest step. A database that is newer than the code is refused. */
export const SCHEMA = 1;

const PARTITIONS = 16;

/** All of the tables, for a database that has none. Run as one batch, under a lock. */
export const TABLES = [
  `CREATE TABLE perdure_schema (id int PRIMARY KEY)`,
  `CREATE TABLE perdure_node (id text PRIMARY KEY, address text NOT NULL, expires timestamptz NOT NULL)`,
  `CREATE TABLE perdure_root (id text COLLATE "C" PRIMARY KEY, node text, epoch bigint NOT NULL)`,
  `CREATE INDEX perdure_root_node ON perdure_root (node) WHERE node IS NOT NULL`,
  `CREATE TABLE perdure_agent (
    id text COLLATE "C" PRIMARY KEY, root text COLLATE "C" NOT NULL, awake bool NOT NULL, alarm bigint,
    doomed bool NOT NULL DEFAULT false, template text NOT NULL, base bigint NOT NULL DEFAULT 0
  )`,
  `CREATE INDEX perdure_agent_root ON perdure_agent (root)`,
  `CREATE INDEX perdure_agent_alarm ON perdure_agent (alarm) WHERE alarm IS NOT NULL`,
  `CREATE INDEX perdure_agent_open ON perdure_agent (root) WHERE awake OR doomed`,
  `CREATE TABLE perdure_lost (child text COLLATE "C" PRIMARY KEY, parent text NOT NULL, root text COLLATE "C" NOT NULL)`,
  `CREATE INDEX perdure_lost_root ON perdure_lost (root)`,
  `CREATE TABLE perdure_template (hash text PRIMARY KEY, bytes bytea NOT NULL)`,
  `CREATE TABLE perdure_base (
    agent text COLLATE "C", seq bigint, part int, bytes bytea NOT NULL, PRIMARY KEY (agent, seq, part)
  )`,
  `ALTER TABLE perdure_base ALTER bytes SET STORAGE EXTERNAL`,
  `CREATE TABLE perdure_blob (
    agent text COLLATE "C", name text COLLATE "C", part int, bytes bytea NOT NULL, PRIMARY KEY (agent, name, part)
  )`,
  `ALTER TABLE perdure_blob ALTER bytes SET STORAGE EXTERNAL`,
  `CREATE TABLE perdure_delta (
    agent text COLLATE "C", seq bigint, epoch bigint NOT NULL, pages bytea NOT NULL, PRIMARY KEY (agent, seq)
  ) PARTITION BY HASH (agent)`,
  // Packed already. Rows come and go quickly, so what is dead is to be cleared away soon.
  ...Array.from({ length: PARTITIONS }, (_, part) => [
    `CREATE TABLE perdure_delta_${part} PARTITION OF perdure_delta FOR VALUES WITH (MODULUS ${PARTITIONS}, REMAINDER ${part})
      WITH (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02)`,
    `ALTER TABLE perdure_delta_${part} ALTER pages SET STORAGE EXTERNAL`,
  ]).flat(),
  `INSERT INTO perdure_schema VALUES (${SCHEMA})`,
];

/**
 * Takes a root that nobody has, or whose node does not live. A statement that comes later and knows the epoch from before changes
 * nothing, whatever clocks say.
 */
export const CLAIM = `
  INSERT INTO perdure_root AS r (id, node, epoch) VALUES ($1, $2, 1)
  ON CONFLICT (id) DO UPDATE SET node = $2, epoch = r.epoch + 1
  WHERE r.node IS NULL OR r.node = $2
    OR NOT EXISTS (SELECT 1 FROM perdure_node n WHERE n.id = r.node AND n.expires > now())
  RETURNING epoch`;

/** The roots whose epoch still counts, held so until the statement is over. */
const OWNED = `k AS MATERIALIZED (SELECT id FROM perdure_root WHERE id = $1 AND epoch = $2 FOR SHARE)`;

/** Checks and writes in one statement, for many agents. It makes an agent known and awake in the commit of its first rows. */
export const APPEND = `
  WITH b AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bytea[])
      AS t (root, epoch, agent, seq, template, pages)),
  k AS MATERIALIZED (
    SELECT id, epoch FROM perdure_root WHERE (id, epoch) IN (SELECT DISTINCT root, epoch FROM b) FOR SHARE),
  g AS MATERIALIZED (SELECT b.* FROM b JOIN k ON k.id = b.root AND k.epoch = b.epoch),
  u AS (
    INSERT INTO perdure_agent AS a (id, root, awake, template) SELECT DISTINCT agent, root, true, template FROM g
    ON CONFLICT (id) DO UPDATE SET awake = true, alarm = NULL WHERE NOT a.awake)
  INSERT INTO perdure_delta (agent, seq, epoch, pages) SELECT agent, seq, epoch, pages FROM g
  RETURNING agent, seq, epoch`;

export const SETTLE = `
  WITH ${OWNED},
  b AS (SELECT * FROM unnest($3::text[], $4::bigint[]) AS t (id, alarm)),
  u AS (
    UPDATE perdure_agent a SET awake = false, alarm = b.alarm FROM b
    WHERE a.id = b.id AND EXISTS (SELECT 1 FROM k))
  SELECT count(*)::int AS n FROM k`;

export const BASE_PART = `
  WITH ${OWNED}
  INSERT INTO perdure_base (agent, seq, part, bytes) SELECT $3, $4, $5, $6 FROM k
  ON CONFLICT (agent, seq, part) DO UPDATE SET bytes = excluded.bytes RETURNING part`;

/** From here on the base counts, and nothing that it holds is kept twice. Parts that a fold left behind go too. */
export const FOLD = `
  WITH ${OWNED},
  u AS (UPDATE perdure_agent SET base = $4 WHERE id = $3 AND EXISTS (SELECT 1 FROM k) RETURNING id),
  d AS (DELETE FROM perdure_delta WHERE agent = $3 AND seq <= $4 AND EXISTS (SELECT 1 FROM u)),
  o AS (
    DELETE FROM perdure_base WHERE agent = $3 AND (seq <> $4 OR part >= $5) AND EXISTS (SELECT 1 FROM u))
  SELECT count(*)::int AS n FROM k`;

export const DOOM = `
  WITH ${OWNED},
  u AS (
    UPDATE perdure_agent SET doomed = true, alarm = NULL WHERE id = ANY ($3::text[]) AND EXISTS (SELECT 1 FROM k)),
  l AS (
    INSERT INTO perdure_lost (child, parent, root) SELECT $4::text, $5::text, $1 FROM k WHERE $4::text IS NOT NULL
    ON CONFLICT DO NOTHING)
  SELECT count(*)::int AS n FROM k`;

export const TOLD = `
  WITH ${OWNED}, d AS (DELETE FROM perdure_lost WHERE child = $3 AND EXISTS (SELECT 1 FROM k))
  SELECT count(*)::int AS n FROM k`;

export const REMOVE = `
  WITH ${OWNED},
  d AS (DELETE FROM perdure_delta WHERE agent = $3 AND EXISTS (SELECT 1 FROM k)),
  o AS (DELETE FROM perdure_base WHERE agent = $3 AND EXISTS (SELECT 1 FROM k)),
  b AS (DELETE FROM perdure_blob WHERE agent = $3 AND EXISTS (SELECT 1 FROM k)),
  a AS (DELETE FROM perdure_agent WHERE id = $3 AND EXISTS (SELECT 1 FROM k))
  SELECT count(*)::int AS n FROM k`;

export const RELEASE = `
  UPDATE perdure_root SET node = NULL WHERE id = $1 AND epoch = $2`;

/** What nobody looks after: alarms that are due, and all that was under way under a node that died or gave it back. */
export const DUE = `
  SELECT a.id FROM (
    SELECT id, root FROM perdure_agent WHERE alarm <= $1 UNION SELECT id, root FROM perdure_agent WHERE awake OR doomed
  ) a JOIN perdure_root r ON r.id = a.root
  WHERE r.node IS NULL OR NOT EXISTS (SELECT 1 FROM perdure_node n WHERE n.id = r.node AND n.expires > now())
  LIMIT (SELECT $2::int)`;

export const BLOB_PART = `
  WITH ${OWNED}
  INSERT INTO perdure_blob (agent, name, part, bytes) SELECT $3, $4, $5, $6 FROM k
  ON CONFLICT (agent, name, part) DO UPDATE SET bytes = excluded.bytes RETURNING part`;

export const DELETE_BLOB = `
  WITH ${OWNED}, d AS (DELETE FROM perdure_blob WHERE agent = $3 AND name = $4 AND EXISTS (SELECT 1 FROM k))
  SELECT count(*)::int AS n FROM k`;

export const PLAIN = {
  hasSchema: "SELECT to_regclass('perdure_schema') IS NOT NULL AS there",
  schema: "SELECT max(id) AS id FROM perdure_schema",
  lock: "SELECT pg_advisory_xact_lock(7237110)",
  join: "INSERT INTO perdure_node (id, address, expires) VALUES ($1, $2, now() + $3 * interval '1 millisecond')",
  renew: "UPDATE perdure_node SET expires = now() + $2 * interval '1 millisecond' WHERE id = $1 RETURNING id",
  leave: "DELETE FROM perdure_node WHERE id = $1",
  // Who died long ago and has no root any more is of no use to anybody.
  forget: `DELETE FROM perdure_node n WHERE expires < now() - interval '1 hour'
    AND NOT EXISTS (SELECT 1 FROM perdure_root r WHERE r.node = n.id)`,
  keepTemplate: "INSERT INTO perdure_template VALUES ($1, $2) ON CONFLICT DO NOTHING",
  template: "SELECT bytes FROM perdure_template WHERE hash = $1",
  owner:
    "SELECT coalesce(n.address, '') AS address FROM perdure_root r LEFT JOIN perdure_node n ON n.id = r.node WHERE r.id = $1",
  agents: "SELECT id, awake, alarm, doomed FROM perdure_agent WHERE root = $1",
  lost: "SELECT child, parent FROM perdure_lost WHERE root = $1",
  agent: "SELECT template, base FROM perdure_agent WHERE id = $1",
  base: "SELECT bytes FROM perdure_base WHERE agent = $1 AND seq = $2 ORDER BY part",
  deltas: "SELECT seq, pages FROM perdure_delta WHERE agent = $1 AND seq > $2 ORDER BY seq",
  exists: "SELECT 1 FROM perdure_agent WHERE id = $1 AND NOT doomed",
  blob: "SELECT bytes FROM perdure_blob WHERE agent = $1 AND name = $2 ORDER BY part",
} as const;
