import { randomUUID } from "node:crypto";
import { type McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { Clock } from "@sandpiper/core";
import { reportInvalidParams } from "./invalid-params.ts";
import { RecentEvents } from "./recent-events.ts";

/** Limit for messages that are kept for clients that reconnect. */
const KEPT_BYTES = 2 * 1024 * 1024;
/** When a client that lost its connection should reconnect. */
const RETRY_MS = 1000;

/** The sandboxes of a session, and the servers that use them. */
export interface Conversation {
  createServer(): McpServer;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface HttpSessionOptions {
  readonly keyId: string;
  readonly conversation: Conversation;
  readonly idleMs: number;
  readonly clock: Clock;
  /** Called once, when the session begins to end. The promise resolves at its end. */
  readonly onEnd: (ended: Promise<void>) => void;
  /** Receives failures of the clean-up. */
  readonly onError: (thrown: unknown) => void;
}

/** One MCP client over HTTP, from its `initialize` until its DELETE, its idle timeout, or the revocation of its key. */
export class HttpSession {
  readonly id: string = randomUUID();
  readonly keyId: string;
  readonly #options: HttpSessionOptions;
  readonly #transport: WebStandardStreamableHTTPServerTransport;
  readonly #ready: Promise<void>;
  /** Number of unfinished answers; a client that listens is not idle. */
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
    reportInvalidParams(this.#transport);
    this.#ready = options.conversation.createServer().connect(this.#transport);
  }

  /** `body` is the parsed body of a POST. */
  async handle(request: Request, body: unknown): Promise<Response> {
    this.#cancelTimer?.();
    this.#open++;
    const onFinished = () => {
      this.#open--;
      this.#startIdleTimer();
    };
    try {
      await this.#ready;
      const response = await this.#transport.handleRequest(request, { parsedBody: body });
      // No client could use the session after an invalid `initialize`.
      if (this.#transport.sessionId === undefined) await this.end();
      if (response.body === null) {
        onFinished();
        return response;
      }
      // Runs once, when the answer has been read completely or its reader has gone, even before it reads.
      const watch = new TransformStream({ flush: onFinished, cancel: onFinished });
      return new Response(response.body.pipeThrough(watch, { signal: request.signal }), response);
    } catch (thrown) {
      onFinished();
      throw thrown;
    }
  }

  /** Cancels running calls and destroys the session's sandboxes; never rejects. A second call waits for the first. */
  end(): Promise<void> {
    if (this.#ending === undefined) {
      this.#ending = this.#cleanUp();
      this.#options.onEnd(this.#ending);
    }
    return this.#ending;
  }

  async #cleanUp(): Promise<void> {
    const { conversation, onError } = this.#options;
    this.#cancelTimer?.();
    await this.#ready.catch(onError);
    await this.#transport.close().catch(onError);
    await conversation[Symbol.asyncDispose]().catch(onError);
  }

  #startIdleTimer(): void {
    if (this.#open > 0 || this.#ending !== undefined) return;
    const { clock, idleMs } = this.#options;
    this.#cancelTimer?.();
    this.#cancelTimer = clock.schedule(idleMs, () => void this.end());
  }
}
