import { SandboxError } from "@sandpiper/protocol";

export interface RequestOrigin {
  readonly origin: string | undefined;
  readonly host: string | undefined;
}

/** Refuses web pages of other origins. Only browsers send an origin; a page that the node itself serves may connect. */
export function requireOrigin({ origin, host }: RequestOrigin, allowed: readonly string[]): void {
  if (origin === undefined || allowed.includes(origin)) return;
  if (host !== undefined && URL.canParse(origin) && new URL(origin).host === host) return;
  throw new SandboxError("origin_not_allowed", {
    message: `web pages of ${origin} may not call this node`,
    details: { origin },
  });
}
