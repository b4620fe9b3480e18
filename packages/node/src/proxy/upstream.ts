import { type ClientRequest, type IncomingMessage, ServerResponse as Response, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { SandboxError } from "@sandpiper/core";
import { type RelayedExchange, sendAnswer, sendRequest } from "./relay-request.ts";
import { joinSockets, sendUpgrade } from "./relay-upgrade.ts";

/** Where a preview's request goes: to a server in a sandbox, or to the node that owns the sandbox. */
export interface Upstream {
  /** With `upgrade`, asks for that protocol. */
  open(upgrade?: string): ClientRequest;
  /** The answer's headers for the client, as a flat list. */
  answerHeaders(incoming: IncomingMessage): readonly string[];
  /** Why there is no valid answer. */
  explain(thrown: unknown): Promise<SandboxError>;
}

/** A client that asks for another protocol. */
export interface UpgradingClient {
  readonly socket: Duplex;
  readonly head: Buffer;
}

export interface RelayOptions {
  readonly exchange: RelayedExchange;
  readonly upgrade?: UpgradingClient | undefined;
  /** Called with the status of the answer, before it is sent. */
  readonly onAnswer: (status: number) => Promise<void>;
}

/** Relays one request and its answer. Throws what `explain` returns if there is none. */
export async function relay(upstream: Upstream, { exchange, upgrade, onAnswer }: RelayOptions): Promise<void> {
  let incoming: IncomingMessage | undefined;
  try {
    if (upgrade !== undefined) {
      const asked = await sendUpgrade(upstream.open(exchange.request.headers.upgrade), upgrade.socket);
      incoming = asked.incoming;
      await onAnswer(incoming.statusCode ?? 101);
      if (asked.kind === "switched") {
        exchange.response.detachSocket(upgrade.socket as Socket);
        const headers = upstream.answerHeaders(incoming);
        joinSockets({ ...asked, client: upgrade.socket, clientHead: upgrade.head, headers });
        return;
      }
    } else {
      incoming = await ask(upstream, exchange);
      await onAnswer(incoming.statusCode ?? 200);
    }
    sendAnswer(incoming, exchange, upstream.answerHeaders(incoming));
  } catch (thrown) {
    incoming?.destroy();
    throw await upstream.explain(thrown);
  }
}

async function ask(upstream: Upstream, exchange: RelayedExchange): Promise<IncomingMessage> {
  const outgoing = upstream.open();
  try {
    return await sendRequest(outgoing, exchange);
  } catch (thrown) {
    // The server may have closed a kept connection just as it was reused. Only a request without effect is sent again.
    const isHarmless = /^(GET|HEAD|OPTIONS)$/.test(exchange.request.method ?? "") && exchange.request.complete;
    if (!outgoing.reusedSocket || !isHarmless || exchange.response.closed) throw thrown;
    return await sendRequest(upstream.open(), exchange);
  }
}

/** The answer to a client that asks for another protocol but does not get it; its connection then closes. */
export function upgradeResponse(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new Response(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Socket);
  response.once("finish", () => socket.end());
  return response;
}
