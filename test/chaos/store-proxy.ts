import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./random.ts";

/** The share of requests, from 0 to 1, that each kind of trouble affects. */
export interface StoreTrouble {
  /** Answered with 500 or 503, without reaching the store. */
  readonly errors: number;
  /** Cut before they reach the store. */
  readonly cuts: number;
  /** Executed by the store, and cut before the response. */
  readonly lostAnswers: number;
  /** The longest delay before a request is forwarded. */
  readonly delayMs: number;
}

export const noTrouble: StoreTrouble = { errors: 0, cuts: 0, lostAnswers: 0, delayMs: 0 };

/** A proxy between nodes and their S3 server that injects errors, cuts and delays. */
export class StoreProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #target: URL;
  readonly #random: Random;
  readonly #agent = new Agent({ keepAlive: true });
  trouble: StoreTrouble = noTrouble;

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
    this.trouble = noTrouble;
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
    // The request's signature covers the Host header, so it stays as it is.
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
