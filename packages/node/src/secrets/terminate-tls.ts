import { once } from "node:events";
import type { Duplex } from "node:stream";
import { connect, type SecureContext, TLSSocket } from "node:tls";
import type { ClientHello } from "../network/client-hello.ts";

const PROTOCOLS = ["h2", "http/1.1"];
const HANDSHAKE_TIMEOUT_MS = 30_000;

/** A server whose handshake failed, for example because of its certificate. */
export class TlsError extends Error {
  readonly code: string;

  constructor(cause: unknown) {
    super("the TLS handshake with the server failed", { cause });
    this.code = cause instanceof Error && "code" in cause ? String(cause.code) : "handshake failed";
  }
}

export type HttpProtocol = "h2" | "http/1.1";

/** The protocols that both the sandbox and the relay speak. Without ALPN, it is HTTP/1.1. */
export function commonProtocols({ protocols }: ClientHello): readonly HttpProtocol[] {
  const common = protocols.filter((name): name is HttpProtocol => PROTOCOLS.includes(name));
  return protocols.length === 0 ? ["http/1.1"] : common;
}

export interface UpstreamTlsOptions {
  readonly host: string;
  readonly protocols: readonly HttpProtocol[];
  /** The authorities that vouch for servers. */
  readonly trust: SecureContext;
}

/** Opens TLS on a connection to a server, and verifies its certificate for the host. */
export async function connectTls(socket: Duplex, { host, protocols, trust }: UpstreamTlsOptions): Promise<TLSSocket> {
  const secured = connect({
    socket,
    servername: host,
    secureContext: trust,
    ALPNProtocols: [...protocols],
    rejectUnauthorized: true,
    minVersion: "TLSv1.2",
  });
  try {
    await once(secured, "secureConnect", { signal: AbortSignal.timeout(HANDSHAKE_TIMEOUT_MS) });
    return secured;
  } catch (thrown) {
    secured.on("error", () => {});
    secured.destroy();
    throw new TlsError(thrown);
  }
}

/** The protocol that a server chose. */
export function chosenProtocol({ alpnProtocol }: TLSSocket): HttpProtocol {
  return alpnProtocol === "h2" ? "h2" : "http/1.1";
}

export interface GuestTlsOptions {
  readonly context: SecureContext;
  readonly protocol: HttpProtocol;
  /** Whether the sandbox offered protocols. */
  readonly usesAlpn: boolean;
}

/** Answers the TLS handshake of a sandbox. */
export async function acceptTls(guest: Duplex, { context, protocol, usesAlpn }: GuestTlsOptions): Promise<TLSSocket> {
  const secured = new TLSSocket(guest, {
    isServer: true,
    secureContext: context,
    ...(usesAlpn && { ALPNProtocols: [protocol] }),
  });
  try {
    await once(secured, "secure", { signal: AbortSignal.timeout(HANDSHAKE_TIMEOUT_MS) });
    // Only servers of Node.js reset it, and HTTP/2 waits for that.
    return Object.assign(secured, { secureConnecting: false });
  } catch (thrown) {
    secured.on("error", () => {});
    secured.destroy();
    throw thrown;
  }
}
