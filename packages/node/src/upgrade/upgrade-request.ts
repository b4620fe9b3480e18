import type { IncomingMessage } from "node:http";
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

function subprotocolsOf(header: string | undefined): readonly string[] {
  return header?.split(",").map((name) => name.trim()) ?? [];
}
