import { type Clock, pause, SandboxError } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { type NetworkHandler, type ServedNetwork, serveNetwork } from "./serve-network.ts";

/** Between two attempts to serve again after the channel was lost. */
const RETRY_MS = 100;

export interface GuestNetworkOptions {
  readonly handler: NetworkHandler;
  readonly clock: Clock;
  /** An open client; rejects once the sandbox has ended. */
  readonly client: () => Promise<AgentClient>;
  /** Whether serving can still succeed. */
  readonly isAlive: () => boolean;
  /** Counts the open call, which does not make the sandbox busy. */
  readonly onServing: (change: 1 | -1) => void;
}

/** Serves the network of a sandbox, on one channel after another, until it is closed or the sandbox ends. */
export class GuestNetwork implements Disposable {
  readonly #options: GuestNetworkOptions;
  readonly #closing = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  /** Resolves when it is closed, the sandbox has ended, or another program serves the network instead. */
  readonly ended = this.#ended.promise;
  #served: ServedNetwork;

  private constructor(options: GuestNetworkOptions, served: ServedNetwork) {
    this.#options = options;
    this.#served = served;
    this.#run().finally(() => this.#ended.resolve());
  }

  /** Rejects with `unimplemented` for an agent without a network. */
  static async open(options: GuestNetworkOptions): Promise<GuestNetwork> {
    return new GuestNetwork(options, await serveNetwork(await options.client(), options.handler));
  }

  /** False where nothing redirects connections to the agent, so that no flow will come. */
  get isRedirected(): boolean {
    return this.#served.isRedirected;
  }

  /** The agent then refuses everything at once. Accepted flows stay. */
  close(): void {
    this.#closing.abort();
    this.#served.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #run(): Promise<void> {
    for (;;) {
      this.#options.onServing(1);
      const error = await this.#served.ended;
      this.#options.onServing(-1);
      // Without an error the agent has ended it, because a newer call serves the network.
      if (error === undefined || !(await this.#serveAgain())) return;
    }
  }

  async #serveAgain(): Promise<boolean> {
    const { signal } = this.#closing;
    while (!signal.aborted && this.#options.isAlive()) {
      try {
        this.#served = await serveNetwork(await this.#options.client(), this.#options.handler);
        if (!signal.aborted) return true;
        this.#served.close();
      } catch (thrown) {
        if (SandboxError.from(thrown).code === "unimplemented") return false;
        await pause(this.#options.clock, RETRY_MS, signal).catch(() => {});
      }
    }
    return false;
  }
}
