import { randomUUID } from "node:crypto";
import { type McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { Clock } from "@sandpiper/core";
import { RecentEvents } from "./recent-events.ts";
import { watchedResponse } from "./watched-response.ts";

/** Of messages for clients that come back. */
const KEPT_BYTES = 2 * 1024 * 1024;
/** How soon a client that lost its connection is to come back. */
const RETRY_MS = 1000;

/** What somebody's requests are about: what a session has made, and servers for it. */
export interface Conversation {
  createServer(): McpServer;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface HttpSessionOptions {
  readonly keyId: string;
  readonly conversation: Conversation;
  readonly idleMs: number;
  readonly clock: Clock;
  /** Called once, when it begins to end, with what waits for its end. */
  readonly onEnd: (ended: Promise<void>) => void;
  /** Told what could not be cleared away. */
  readonly onError: (thrown: unknown) => void;
}

/** One client over HTTP, from its `initialize` until it says goodbye, is silent for too long, or is not let in any more. */
export class HttpSession {
  readonly id: string = randomUUID();
  readonly keyId: string;
  readonly #options: HttpSessionOptions;
  readonly #transport: WebStandardStreamableHTTPServerTransport;
  readonly #ready: Promise<void>;
  /** Answers that are not over; a client that listens is not idle. */
  #open = 0;
  #cancelTimer: (() => void) | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: HttpSessionOptions) {
    this.keyId = options.keyId;
    this.#options = options;
    this.#transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => this.id,
      eventStore: new RecentEvents({ limitBytes: KEPT_BYTES }),
      retryInterval: RETRY_MS,
      onsessionclosed: () => this.end(),
    });
    this.#ready = options.conversation.createServer().connect(this.#transport);
  }

  /** `body` is the parsed one of a POST. */
  async handle(request: Request, body: unknown): Promise<Response> {
    this.#cancelTimer?.();
    this.#open++;
    const over = () => {
      this.#open--;
      this.#waitForNext();
    };
    try {
      await this.#ready;
      const response = await this.#transport.handleRequest(request, { parsedBody: body });
      // An `initialize` that was none leaves a session that nobody could ever use.
      if (this.#transport.sessionId === undefined) await this.end();
      return watchedResponse(response, request, over);
    } catch (thrown) {
      over();
      throw thrown;
    }
  }

  /** Cuts what is under way and destroys what was made for it; never rejects. A second call waits for the first. */
  end(): Promise<void> {
    if (this.#ending === undefined) {
      this.#ending = this.#clear();
      this.#options.onEnd(this.#ending);
    }
    return this.#ending;
  }

  async #clear(): Promise<void> {
    const { conversation, onError } = this.#options;
    this.#cancelTimer?.();
    await this.#ready.catch(onError);
    await this.#transport.close().catch(onError);
    await conversation[Symbol.asyncDispose]().catch(onError);
  }

  #waitForNext(): void {
    if (this.#open > 0 || this.#ending !== undefined) return;
    const { clock, idleMs } = this.#options;
    this.#cancelTimer?.();
    this.#cancelTimer = clock.schedule(idleMs, () => void this.end());
  }
}
