import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { SandboxError } from "@sandpiper/core";
import { SOCKET_PROTOCOL } from "@sandpiper/protocol";
import { rawErrorResponse } from "../http/error-response.ts";

const BEARER = "bearer.";

export type SocketRoute =
  | { readonly name: "socket" }
  | { readonly name: "create"; readonly query: URLSearchParams }
  | { readonly name: "attach"; readonly id: string; readonly query: URLSearchParams };

/** Throws `not_found` for any other path. */
export function socketRoute(url: string): SocketRoute {
  const at = url.indexOf("?");
  const path = at === -1 ? url : url.slice(0, at);
  const query = new URLSearchParams(at === -1 ? "" : url.slice(at));
  if (path === "/v1/socket") return { name: "socket" };
  if (path === "/create") return { name: "create", query };
  const id = /^\/attach\/([^/]+)$/.exec(path)?.[1];
  if (id !== undefined) return { name: "attach", id, query };
  throw new SandboxError("no_such_route", { message: `no WebSocket at ${path.slice(0, 256)}` });
}

/** Reads the Authorization header, or for browsers, which cannot set it, the subprotocols. */
export function credentialOf({ headers }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  if (authorization !== undefined) return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  return subprotocolsOf(headers["sec-websocket-protocol"])
    .find((name) => name.startsWith(BEARER))
    ?.slice(BEARER.length);
}

/** A browser closes the connection unless the node selects one of the subprotocols that it offered. */
export function chooseSubprotocol(offered: ReadonlySet<string>): string | false {
  if (offered.has(SOCKET_PROTOCOL)) return SOCKET_PROTOCOL;
  for (const name of offered) if (name.startsWith(BEARER)) return name;
  return false;
}

function subprotocolsOf(header: string | undefined): readonly string[] {
  return header?.split(",").map((name) => name.trim()) ?? [];
}

/** Answers with the usual error body and closes the connection. */
export function refuseUpgrade(socket: Duplex, error: SandboxError, requestId: string): void {
  // The client may never close its half.
  socket.once("finish", () => socket.destroy());
  socket.end(rawErrorResponse(error, requestId));
}
