import { SandboxError } from "@sandpiper/protocol";

export interface RequestOrigin {
  readonly origin: string | undefined;
  readonly host: string | undefined;
}

/** Pages send their origin, and only browsers are bound to tell the truth about it: a page of the node's own may connect. */
export function requireOrigin({ origin, host }: RequestOrigin, allowed: readonly string[]): void {
  if (origin === undefined || allowed.includes(origin)) return;
  if (host !== undefined && URL.canParse(origin) && new URL(origin).host === host) return;
  throw new SandboxError("permission_denied", {
    reason: "origin_not_allowed",
    message: `a page of ${origin} may not connect to this node`,
    hint: "add its origin to the node's corsOrigins",
    details: { origin },
  });
}
