/**
 * The SQL that upgrades the database by one version each; the first entry creates version 1. Released entries never change.
 * Columns have the names of the record's fields. Instants are milliseconds since 1970.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE sandboxes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    keyId TEXT NOT NULL,
    state TEXT NOT NULL,
    provider TEXT NOT NULL,
    name TEXT,
    labels TEXT NOT NULL,
    metadata TEXT NOT NULL,
    env TEXT NOT NULL,
    image TEXT NOT NULL,
    memoryMib INTEGER NOT NULL,
    vcpuCount REAL NOT NULL,
    diskMib INTEGER NOT NULL,
    maxProcesses INTEGER NOT NULL,
    language TEXT,
    cwd TEXT,
    user TEXT,
    timeoutMs INTEGER,
    ttlMs INTEGER,
    expiresAt INTEGER,
    idleTimeoutMs INTEGER,
    idleExcept TEXT NOT NULL,
    onExpiry TEXT NOT NULL,
    failure TEXT,
    createdAt INTEGER NOT NULL,
    endedAt INTEGER
  ) STRICT;
  CREATE INDEX sandboxesByTenant ON sandboxes (tenant, createdAt);
  CREATE INDEX sandboxesByAge ON sandboxes (createdAt);
  CREATE INDEX sandboxesByEnd ON sandboxes (endedAt) WHERE endedAt IS NOT NULL;
  -- Destroyed sandboxes must not slow down the lists of the others.
  CREATE INDEX presentSandboxes ON sandboxes (createdAt) WHERE state <> 'destroyed';
  CREATE INDEX presentSandboxesByTenant ON sandboxes (tenant, createdAt) WHERE state <> 'destroyed';
  CREATE INDEX liveSandboxesByKey ON sandboxes (keyId, state, memoryMib, vcpuCount)
    WHERE state NOT IN ('destroyed', 'failed');

  CREATE TABLE idempotencyKeys (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    sandboxId TEXT NOT NULL,
    usedAt INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotencyKeysByAge ON idempotencyKeys (usedAt);

  CREATE TABLE apiKeys (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    tenant TEXT NOT NULL,
    scopes TEXT NOT NULL,
    quota TEXT NOT NULL,
    createdAt INTEGER NOT NULL,
    expiresAt INTEGER,
    revokedAt INTEGER
  ) STRICT;

  -- AUTOINCREMENT never reuses an id, even after all rows are removed.
  CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tenant TEXT,
    sandboxId TEXT,
    details TEXT NOT NULL
  ) STRICT;
  CREATE INDEX eventsByTenant ON events (tenant, id);
  CREATE INDEX eventsBySandbox ON events (sandboxId, id);

  CREATE TABLE auditEntries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT,
    tenant TEXT,
    operation TEXT NOT NULL,
    sandboxId TEXT,
    status INTEGER NOT NULL,
    requestId TEXT NOT NULL
  ) STRICT;

  CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    kinds TEXT,
    secret TEXT NOT NULL,
    lastEventId INTEGER NOT NULL,
    createdAt INTEGER NOT NULL
  ) STRICT;
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN fidelity TEXT NOT NULL DEFAULT 'none';
  ALTER TABLE sandboxes ADD COLUMN checkpointPolicy TEXT;
  ALTER TABLE sandboxes ADD COLUMN rolledBackTo TEXT;
  ALTER TABLE sandboxes ADD COLUMN rollbacks INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE sandboxes ADD COLUMN epoch INTEGER;
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN container TEXT;
  `,
  `
  CREATE TABLE keptVolumes (
    sandboxId TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    provider TEXT NOT NULL,
    keptAt INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN stoppedAt INTEGER;
  `,
  `
  ALTER TABLE auditEntries ADD COLUMN notRecorded TEXT;
  ALTER TABLE auditEntries ADD COLUMN share TEXT NOT NULL DEFAULT 'anonymous';
  -- Null in rows from before the chain, until the node has chained them.
  ALTER TABLE auditEntries ADD COLUMN mac TEXT;
  UPDATE auditEntries SET share = 'tenant:' || tenant WHERE tenant IS NOT NULL;
  CREATE INDEX auditEntriesByShare ON auditEntries (share, id);
  CREATE TABLE auditRotated (
    toId INTEGER PRIMARY KEY,
    fromId INTEGER NOT NULL UNIQUE,
    mac TEXT NOT NULL,
    seal TEXT NOT NULL
  ) STRICT;
  CREATE TABLE auditHead (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id INTEGER NOT NULL,
    mac TEXT NOT NULL,
    seal TEXT NOT NULL
  ) STRICT;
  `,
  `
  CREATE INDEX liveSandboxesByName ON sandboxes (tenant, name)
    WHERE name IS NOT NULL AND state NOT IN ('destroyed', 'failed');
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN onFailure TEXT NOT NULL DEFAULT 'keep';
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN recordBytes INTEGER GENERATED ALWAYS AS (
    octet_length(env) + octet_length(labels) + octet_length(metadata) + coalesce(octet_length(container), 0)
      + coalesce(octet_length(cwd), 0) + coalesce(octet_length(failure), 0) + 1024
  ) VIRTUAL;
  CREATE INDEX sandboxBytesByTenant ON sandboxes (tenant, state, recordBytes);

  -- Sandboxes that were never ready. Their records lack what only a running sandbox needs.
  CREATE TABLE failedCreations (
    sandboxId TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    failedAt INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX failedCreationsByTenant ON failedCreations (tenant, failedAt);
  `,
  `
  CREATE TABLE tenantQuotas (tenant TEXT PRIMARY KEY, quota TEXT NOT NULL) STRICT, WITHOUT ROWID;
  ALTER TABLE sandboxes ADD COLUMN checkpointCount INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE sandboxes ADD COLUMN checkpointBytes INTEGER NOT NULL DEFAULT 0;
  -- Also failed sandboxes count: they keep their checkpoints.
  DROP INDEX liveSandboxesByKey;
  CREATE INDEX presentSandboxesByKey ON sandboxes (keyId) WHERE state <> 'destroyed';
  `,
  `
  -- What sandboxes did on the network. The cursor ascends with each change; a record that changes gets a new one.
  CREATE TABLE flowRecords (
    cursor INTEGER PRIMARY KEY,
    sandboxId TEXT NOT NULL,
    at INTEGER NOT NULL,
    isDenied INTEGER NOT NULL,
    isOpen INTEGER NOT NULL,
    record TEXT NOT NULL
  ) STRICT;
  CREATE INDEX flowRecordsBySandbox ON flowRecords (sandboxId, cursor);
  CREATE INDEX openFlowRecords ON flowRecords (cursor) WHERE isOpen = 1;
  CREATE TABLE flowLogs (
    sandboxId TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    dropped INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  ALTER TABLE apiKeys ADD COLUMN maxNetwork TEXT;
  ALTER TABLE sandboxes ADD COLUMN network TEXT;
  DROP INDEX sandboxBytesByTenant;
  ALTER TABLE sandboxes DROP COLUMN recordBytes;
  ALTER TABLE sandboxes ADD COLUMN recordBytes INTEGER GENERATED ALWAYS AS (
    octet_length(env) + octet_length(labels) + octet_length(metadata) + coalesce(octet_length(container), 0)
      + coalesce(octet_length(cwd), 0) + coalesce(octet_length(failure), 0) + coalesce(octet_length(network), 0) + 1024
  ) VIRTUAL;
  CREATE INDEX sandboxBytesByTenant ON sandboxes (tenant, state, recordBytes);
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN publicPorts TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE sandboxes ADD COLUMN linkEpoch INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- Names and placeholders of secrets, never values.
  ALTER TABLE sandboxes ADD COLUMN secrets TEXT NOT NULL DEFAULT '[]';
  `,
  `
  -- A flood of one class of records must not drive out the others.
  ALTER TABLE flowRecords ADD COLUMN class TEXT NOT NULL DEFAULT 'flow';
  UPDATE flowRecords SET class = iif(isDenied = 1, 'denied', iif(record ->> 'kind' = 'query', 'query', 'flow'));
  CREATE INDEX flowRecordsByClass ON flowRecords (sandboxId, class, cursor);
  `,
];
