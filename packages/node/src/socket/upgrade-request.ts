import type { IncomingMessage } from "node:http";
import { SandboxError } from "@sandpiper/core";
import { SOCKET_PROTOCOL } from "@sandpiper/protocol";

const BEARER = "bearer.";

/** The credential of a connection: from its header, or for browsers, which cannot set any, from its subprotocols. */
export function credentialOf({ headers }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  if (authorization !== undefined) return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  return subprotocolsOf(headers["sec-websocket-protocol"])
    .find((name) => name.startsWith(BEARER))
    ?.slice(BEARER.length);
}

/** A browser gives up unless one of those it offered is chosen. */
export function chooseSubprotocol(offered: ReadonlySet<string>): string | false {
  if (offered.has(SOCKET_PROTOCOL)) return SOCKET_PROTOCOL;
  for (const name of offered) if (name.startsWith(BEARER)) return name;
  return false;
}

/** Pages send their origin, and only browsers are bound to tell the truth about it: a page of the node's own may connect. */
export function requireOrigin({ headers }: IncomingMessage, allowed: readonly string[]): void {
  const { origin, host } = headers;
  if (origin === undefined || allowed.includes(origin)) return;
  if (host !== undefined && URL.canParse(origin) && new URL(origin).host === host) return;
  throw new SandboxError("permission_denied", {
    reason: "origin_not_allowed",
    message: `a page of ${origin} may not connect to this node`,
    hint: "add its origin to the node's corsOrigins",
    details: { origin },
  });
}

function subprotocolsOf(header: string | undefined): readonly string[] {
  return header?.split(",").map((name) => name.trim()) ?? [];
}
