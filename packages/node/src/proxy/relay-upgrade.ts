import type { ClientRequest, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

/** The answer to a request that asks for another protocol. */
export type UpgradeAnswer =
  | { readonly kind: "switched"; readonly incoming: IncomingMessage; readonly socket: Duplex; readonly head: Buffer }
  /** The server answered in HTTP, for example with a refusal. */
  | { readonly kind: "answered"; readonly incoming: IncomingMessage };

/** Sends a request that asks for another protocol. Rejects if there is no answer. */
export function sendUpgrade(outgoing: ClientRequest, client: Duplex): Promise<UpgradeAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<UpgradeAnswer>();
  const leave = () => void outgoing.destroy();
  client.once("close", leave);
  outgoing.once("upgrade", (incoming, socket, head) => {
    client.off("close", leave);
    resolve({ kind: "switched", incoming, socket, head });
  });
  outgoing.once("response", (incoming) => resolve({ kind: "answered", incoming }));
  outgoing.on("error", reject);
  outgoing.once("close", () => reject(new Error("the connection closed before the answer")));
  outgoing.end();
  return promise;
}

interface Switched extends Extract<UpgradeAnswer, { kind: "switched" }> {
  readonly client: Duplex;
  /** What the client sent after its request. */
  readonly clientHead: Buffer;
  readonly headers: readonly string[];
}

/** Completes the handshake and copies both directions until both have ended. Each can end alone. */
export function joinSockets({ client, clientHead, incoming, socket, head, headers }: Switched): void {
  const lines = ["HTTP/1.1 101 Switching Protocols"];
  const all = ["connection", "Upgrade", "upgrade", incoming.headers.upgrade ?? "", ...headers];
  for (let at = 0; at + 1 < all.length; at += 2) lines.push(`${all[at]}: ${all[at + 1]}`);
  client.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  if (head.length > 0) client.write(head);
  if (clientHead.length > 0) socket.write(clientHead);
  // An error closes the stream, which ends the other one.
  for (const [one, other] of [
    [client, socket],
    [socket, client],
  ] as const) {
    one.on("error", () => {});
    one.once("close", () => other.destroy());
    one.pipe(other);
  }
  if (client.destroyed) socket.destroy();
}
