// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const configReasons = {
  bad_tls_files: { code: "failed_precondition", meaning: "The TLS certificate and key cannot be used.", hint: "set tls.certFile and tls.keyFile to PEM files that belong together and that the node may read", details: { certFile: "string", keyFile: "string" } },
  database_corrupt: { code: "data_loss", meaning: "The node's database is damaged; it was left unchanged.", hint: "restore it from a backup, or move it and its -wal file away and start with an empty one", details: { path: "string" } },
  database_too_new: { code: "failed_precondition", meaning: "A newer version of Sandpiper wrote the node's database; it was left unchanged.", hint: "start the newer version, or move the database away and start with an empty one", details: { path: "string", found: "number", known: "number" } },
  database_unusable: { code: "failed_precondition", meaning: "The node's database cannot be opened.", hint: "check that this user may read and write it and its directory, and that the disk is not full", details: { path: "string" } },
  home_in_use: { code: "failed_precondition", meaning: "Another node uses this home directory.", hint: "stop that node, or set SANDPIPER_HOME to another directory", details: { path: "string", pid: "number?" } },
  insecure_bind: { code: "failed_precondition", meaning: "Other machines could reach the node, and it has no TLS.", hint: "set tls.certFile and tls.keyFile, use 127.0.0.1 behind a TLS proxy, or, on a trusted network, --allow-insecure", details: { host: "string" } },
  invalid_config: { code: "invalid_argument", meaning: "The configuration has wrong values.", hint: "correct the named fields; docs/configuration.md lists every key", details: { problems: "string[]?", fields: "string[]?", field: "string?" } },
  no_such_host: { code: "failed_precondition", meaning: "The machine does not have the address that the node should listen on.", hint: "set --host or SANDPIPER_HOST to an address of this machine", details: { host: "string", port: "number" } },
  port_in_use: { code: "failed_precondition", meaning: "Another program listens on the node's port.", hint: "stop it, or choose another port with --port or SANDPIPER_PORT, 0 for a free one", details: { host: "string", port: "number" } },
  port_not_allowed: { code: "failed_precondition", meaning: "The user may not listen on this port.", hint: "choose a port of 1024 or above with --port or SANDPIPER_PORT", details: { host: "string", port: "number" } },
  secret_corrupt: { code: "data_loss", meaning: "A secret file of the node has the wrong length; it was left unchanged.", hint: "restore it from a backup or another node of the cluster", details: { path: "string" } },
} as const satisfies Record<string, ErrorReasonEntry>;
