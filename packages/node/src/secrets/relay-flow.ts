import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { SecureContext, TLSSocket } from "node:tls";
import { type ClientHello, type HelloReading, readClientHello } from "../network/client-hello.ts";
import { type Admit, RefusedRequest } from "./exchange.ts";
import { joinStreams } from "./join-streams.ts";
import { readFirstBytes } from "./read-first-bytes.ts";
import { relayHttp1 } from "./relay-http1.ts";
import { relayHttp2 } from "./relay-http2.ts";
import type { Destination } from "./secret-host.ts";
import {
  acceptTls,
  chosenProtocol,
  commonProtocols,
  connectTls,
  type HttpProtocol,
  TlsError,
} from "./terminate-tls.ts";

export interface RelayFlowOptions extends Destination {
  /** Connects to the address that the policy checked. */
  readonly dial: () => Promise<Socket>;
  /** Checks each request, and injects secrets that may be sent over this kind of connection. */
  readonly admit: (connection: { readonly isSecure: boolean }) => Admit;
  /** Whether a secret may be sent without encryption. */
  readonly allowsInsecure: boolean;
  /** The key and certificate for a host name. */
  readonly contextFor: (host: string) => SecureContext;
  /** The authorities that vouch for servers. */
  readonly trust: SecureContext;
}

/** Why a connection did not get as far as a request. */
export type RelayFault = "tls_name_mismatch" | "connect_failed" | "untrusted_server" | "not_http";

/**
 * Relays one connection of a sandbox: HTTP over TLS, and plain HTTP if secrets allow it, request by request; other bytes as they
 * are. Resolves when the connection has ended. Rejects if either side breaks it before a request.
 */
export async function relayFlow(guest: Duplex, options: RelayFlowOptions): Promise<RelayFault | undefined> {
  const hello = await readHello(guest);
  if (guest.readableEnded) {
    guest.destroy();
    return undefined;
  }
  if (hello.kind === "malformed") {
    guest.destroy();
    return "tls_name_mismatch";
  }
  if (hello.kind === "hello") return await relayTls(guest, hello, options);
  const upstream = await options.dial();
  if (options.allowsInsecure) await relayHttp1(guest, { upstream, admit: options.admit({ isSecure: false }) });
  else await joinStreams(guest, upstream);
  return undefined;
}

async function readHello(guest: Duplex): Promise<HelloReading> {
  let hello = readClientHello(Buffer.alloc(0));
  await readFirstBytes(guest, (bytes) => {
    hello = readClientHello(bytes);
    return hello.kind !== "incomplete";
  });
  return hello;
}

async function relayTls(guest: Duplex, hello: ClientHello, options: RelayFlowOptions): Promise<RelayFault | undefined> {
  const { name, dial, contextFor, trust } = options;
  const protocols = commonProtocols(hello);
  const isMismatch = hello.serverName !== null && hello.serverName.toLowerCase() !== name;
  if (isMismatch || protocols.length === 0) {
    guest.destroy();
    return isMismatch ? "tls_name_mismatch" : "not_http";
  }
  const usesAlpn = hello.protocols.length > 0;
  const serve = async (protocol: HttpProtocol, admit: Admit, upstream: Duplex | undefined) => {
    const secured = await acceptTls(guest, { context: contextFor(name), protocol, usesAlpn });
    secured.on("error", () => {});
    // HTTP/2 takes over the socket and does not see its end.
    if (protocol === "h2") guest.once("end", () => secured.destroy());
    await (protocol === "h2" ? relayHttp2 : relayHttp1)(secured, { upstream, admit });
  };
  // Answered with the last, as that is the protocol which every client understands.
  const refuseAll = (why: string) =>
    serve(protocols.at(-1) as HttpProtocol, () => Promise.reject(new RefusedRequest(502, why)), undefined);

  let upstream: TLSSocket;
  try {
    upstream = await connectTls(await dial(), { host: name, protocols, trust });
  } catch (thrown) {
    const { fault, why } = describeFailure(thrown, name);
    await refuseAll(why);
    return fault;
  }
  upstream.on("error", () => {});
  try {
    await serve(chosenProtocol(upstream), options.admit({ isSecure: true }), upstream);
  } finally {
    upstream.destroy();
  }
  return undefined;
}

function describeFailure(thrown: unknown, name: string): { readonly fault: RelayFault; readonly why: string } {
  if (!(thrown instanceof TlsError)) return { fault: "connect_failed", why: `the node cannot connect to ${name}` };
  return { fault: "untrusted_server", why: `the node cannot verify that the server is ${name} (${thrown.code})` };
}
