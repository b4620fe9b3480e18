import type { SandboxError } from "@sandpiper/protocol";
import type { Instance } from "../provider.ts";
import type { AgentClient } from "./agent-client.ts";
import { type ConnectAgentOptions, connectAgent } from "./connect-agent.ts";

/** The connection to an instance's agent; reconnects after a lost channel. */
export class AgentLink {
  readonly #instance: Instance;
  readonly #options: ConnectAgentOptions;
  readonly #closing = new AbortController();
  #client: AgentClient;
  #reopening: Promise<AgentClient> | undefined;

  private constructor(instance: Instance, options: ConnectAgentOptions, client: AgentClient) {
    this.#instance = instance;
    this.#options = options;
    this.#client = client;
  }

  static async open(instance: Instance, options: ConnectAgentOptions): Promise<AgentLink> {
    return new AgentLink(instance, options, await connectAgent(instance, options));
  }

  /** The client that was open last; it may be closed. */
  get latest(): AgentClient {
    return this.#client;
  }

  /** An open client. Concurrent callers share a new channel. */
  async client(): Promise<AgentClient> {
    if (!this.#client.isClosed) return this.#client;
    this.#closing.signal.throwIfAborted();
    this.#reopening ??= this.#reopen();
    return this.#reopening;
  }

  close(reason: SandboxError): void {
    this.#closing.abort(reason);
    this.#client.close(reason);
  }

  async #reopen(): Promise<AgentClient> {
    try {
      this.#client = await connectAgent(this.#instance, { ...this.#options, signal: this.#closing.signal });
      return this.#client;
    } finally {
      this.#reopening = undefined;
    }
  }
}
