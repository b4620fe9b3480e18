// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const authReasons = {
  already_expired: { code: "invalid_argument", meaning: "The key's expiresAt has passed.", hint: "give an instant in the future, or null for a key that does not expire" },
  bad_credential: { code: "unauthenticated", meaning: "The credential is unknown, expired or revoked.", hint: "use a valid API key or the sandbox's token" },
  bad_node_proof: { code: "unauthenticated", meaning: "The request claims to come from a node of this cluster, without proof.", hint: "nodes of a cluster need the same secret, and clocks at most 30 seconds apart; see docs/cluster.md" },
  host_not_allowed: { code: "permission_denied", meaning: "The Host header of the request is not a known name of this node.", hint: "use the node's address, or add the name to its mcp.allowedHosts", details: { host: "string?" } },
  key_revoked: { code: "failed_precondition", meaning: "The API key is revoked and cannot be changed.", hint: "create a new key", details: { key: "string" } },
  missing_scope: { code: "permission_denied", meaning: "The key lacks the scope that the operation needs.", hint: "use a key with that scope", details: { needed: "string" } },
  no_credential: { code: "unauthenticated", meaning: "The request has no credential.", hint: "send an API key or the sandbox's token" },
  no_such_key: { code: "not_found", meaning: "No API key with this id exists.", hint: "list the keys; a key's id is the part between its two underscores" },
  no_such_tenant: { code: "not_found", meaning: "The name cannot be that of a tenant.", hint: "list the tenants: sandpiper tenants ls" },
  origin_not_allowed: { code: "permission_denied", meaning: "Pages of this origin may not connect to the node.", hint: "add the origin to the node's corsOrigins", details: { origin: "string" } },
  token_withheld: { code: "permission_denied", meaning: "A read-only key does not receive the tokens of sandboxes.", hint: "use a key with the scope sandboxes" },
} as const satisfies Record<string, ErrorReasonEntry>;
