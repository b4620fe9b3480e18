// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const secretReasons = {
  no_such_secret: { code: "not_found", meaning: "The tenant has no secret with this name.", hint: "list them with sandpiper secrets ls", details: { name: "string" } },
  secret_exists: { code: "already_exists", meaning: "The tenant already has a secret with this name.", hint: "update it to set a new value", details: { name: "string" } },
  secret_limit: { code: "resource_exhausted", meaning: "The tenant has as many secrets as it may have.", hint: "delete secrets that no sandbox uses", details: { limit: "number" } },
  secrets_need_key: { code: "permission_denied", meaning: "A sandbox token cannot choose the secrets of its sandbox.", hint: "use an API key of the tenant" },
} as const satisfies Record<string, ErrorReasonEntry>;
