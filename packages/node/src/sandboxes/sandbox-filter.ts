import type { ListSandboxesQuery } from "@sandpiper/protocol";
import { isAdmin } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { SandboxFilter } from "../records/sandbox-record.ts";

const DEFAULT_PAGE_SIZE = 100;

/** Restricts a query to the sandboxes that the caller can see. */
export function sandboxFilter(principal: Principal, query: ListSandboxesQuery): SandboxFilter {
  return {
    tenant: isAdmin(principal) ? undefined : principal.tenant,
    state: query.state,
    provider: query.provider,
    name: query.name,
    labels: query.label?.map(parseLabel),
    limit: query.limit ?? DEFAULT_PAGE_SIZE,
    cursor: query.cursor,
  };
}

function parseLabel(text: string): { key: string; value: string | null } {
  const at = text.indexOf("=");
  return at === -1 ? { key: text, value: null } : { key: text.slice(0, at), value: text.slice(at + 1) };
}
