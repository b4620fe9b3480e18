import { type AddressInfo, connect as connectTcp, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect, createSecureContext, type TLSSocket } from "node:tls";
import { systemClock } from "@sandpiper/core";
import { onTestFinished } from "vitest";
import { Keyring } from "../../auth/keyring.ts";
import { TunnelDuplex } from "../../network/tunnel-duplex.ts";
import { admitRequests, type RequestRecord } from "../admit-requests.ts";
import { CertificateAuthority } from "../certificate-authority.ts";
import type { UsableSecret } from "../inject.ts";
import { type RelayFault, relayFlow } from "../relay-flow.ts";

export const HOST = "api.example.com";

const authority = (secret: string) =>
  new CertificateAuthority({
    keyring: new Keyring({ secrets: [secret.repeat(32)], salt: "test" }),
    clock: systemClock,
  });

/** The authority that the sandbox trusts, and the one of the internet. */
const [inside, outside] = [authority("i"), authority("o")];

/** The TLS options of a server that the node trusts. */
export function serverContext(host = HOST) {
  return outside.contextFor(host);
}

export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

export interface RelayedOptions {
  readonly secrets: readonly UsableSecret[];
  /** The port of the real server. */
  readonly to: number;
  readonly port?: number;
  readonly allowsInsecure?: boolean;
}

export interface Relayed {
  /** The sandbox's end of the connection, without TLS. */
  readonly guest: Duplex;
  readonly requests: RequestRecord[];
  readonly done: Promise<RelayFault | undefined>;
  /** Opens TLS from inside. */
  secure(options?: { readonly protocols?: string[]; readonly servername?: string }): TLSSocket;
}

/** A connection of a sandbox to `HOST`, which ends at a server on this machine. */
export async function relayed({ secrets, to, port = 443, allowsInsecure = false }: RelayedOptions): Promise<Relayed> {
  const [guest, node] = await connectionPair();
  const requests: RequestRecord[] = [];
  const upstreams: Duplex[] = [];
  const done = relayFlow(node, {
    name: HOST,
    port,
    allowsInsecure,
    dial: async () => {
      const socket = connectTcp({ host: "127.0.0.1", port: to, allowHalfOpen: true });
      upstreams.push(socket);
      await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return socket;
    },
    admit: () => admitRequests({ name: HOST, port, secrets: async () => secrets, requests }),
    contextFor: (host) => inside.contextFor(host),
    trust: createSecureContext({ ca: outside.certificates }),
  });
  done.catch(() => {});
  onTestFinished(() => {
    for (const stream of [guest, node, ...upstreams]) stream.destroy();
  });
  const secure: Relayed["secure"] = ({ protocols, servername = HOST } = {}) => {
    const socket = connect({
      socket: guest,
      servername,
      ca: inside.certificates,
      ...(protocols && { ALPNProtocols: protocols }),
    });
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  return { guest, requests, done, secure };
}

/** The stream that the network engine gives to an interceptor. */
function asTunnel(socket: Socket): Duplex {
  const done = (work: (callback: (error?: Error | null) => void) => void) =>
    new Promise<void>((resolve, reject) => work((error) => (error ? reject(error) : resolve())));
  const tunnel = {
    write: (bytes: Uint8Array) => done((callback) => socket.write(bytes, callback)),
    end: () => done((callback) => socket.end(callback)),
    close: () => void socket.destroy(),
  };
  const free = { clock: systemClock, countSent: () => 0, countReceived: () => 0 };
  const duplex = new TunnelDuplex({ tunnel, outgoing: socket.iterator({ destroyOnReturn: false }), ...free });
  duplex.on("error", () => {});
  return duplex;
}

/** The two ends of a connection. */
async function connectionPair(): Promise<[Duplex, Duplex]> {
  const accepted = Promise.withResolvers<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => accepted.resolve(socket));
  const guest = connectTcp({ host: "127.0.0.1", port: await listen(server), allowHalfOpen: true, noDelay: true });
  guest.on("error", () => {});
  const socket = await accepted.promise;
  socket.on("error", () => {});
  return [guest, asTunnel(socket)];
}
