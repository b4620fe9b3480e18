import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./random.ts";

/** How a store misbehaves: each is the share of requests, from 0 to 1. */
export interface StoreTrouble {
  /** Answered with 500 or 503, without being carried out. */
  readonly errors: number;
  /** Cut before the store sees them. */
  readonly cuts: number;
  /** Carried out, and cut before the answer. */
  readonly lostAnswers: number;
  /** Held back before they are passed on, for up to this long. */
  readonly delayMs: number;
}

const none: StoreTrouble = { errors: 0, cuts: 0, lostAnswers: 0, delayMs: 0 };

/** Stands between nodes and their S3 server, and makes trouble when told to. */
export class StoreProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #target: URL;
  readonly #random: Random;
  readonly #agent = new Agent({ keepAlive: true });
  trouble: StoreTrouble = none;

  private constructor(server: Server, target: URL, random: Random) {
    this.#server = server;
    this.#target = target;
    this.#random = random;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (incoming, response) => {
      this.#pass(incoming, response).catch(() => incoming.socket.destroy());
    });
  }

  static async start(target: string, random: Random): Promise<StoreProxy> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new StoreProxy(server, new URL(target), random);
  }

  heal(): void {
    this.trouble = none;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
    this.#agent.destroy();
  }

  async #pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { errors, cuts, lostAnswers, delayMs } = this.trouble;
    const chance = this.#random.next();
    if (delayMs > 0) await sleep(this.#random.between(0, delayMs));
    if (chance < errors) {
      incoming.resume();
      response.writeHead(this.#random.pick([500, 503])).end();
      return;
    }
    if (chance < errors + cuts) {
      incoming.socket.destroy();
      return;
    }
    const { method, url, headers } = incoming;
    const { hostname, port } = this.#target;
    // The signature is over the name by which the node knows the store, so that is kept.
    const outgoing = request({ hostname, port, method, path: url, headers, agent: this.#agent });
    const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
    const [[answer]] = await Promise.all([answered, pipeline(incoming, outgoing)]);
    if (chance < errors + cuts + lostAnswers) {
      answer.resume();
      incoming.socket.destroy();
      return;
    }
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    await pipeline(answer, response);
  }
}
