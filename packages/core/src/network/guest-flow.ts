import type { NetworkEvent } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { type DialOptions, openTunnel, type Tunnel } from "../agent/tunnel.ts";

/** A connection that something in the sandbox has opened and that waits for a decision. Nothing in it is trusted. */
export interface GuestFlow {
  /** Unique for one `ready` line of the agent. */
  readonly id: number;
  /** The name whose stand-in address was dialed; null for an address. */
  readonly name: string | null;
  readonly address: string;
  readonly port: number;
  readonly pid: number | null;
  readonly program: string | null;
  /** Aborted when the guest closed the connection, or the channel ended, before the flow was accepted or refused. */
  readonly gone: AbortSignal;
  /** Connects the guest. Ending the tunnel's writing direction ends what the guest reads; `close` resets the connection. */
  accept(options?: DialOptions): Promise<Tunnel>;
  /** Resets the connection. */
  refuse(): void;
}

type FlowEvent = Extract<NetworkEvent, { kind: "flow" }>;

/** The flows of one net.serve call that are not decided yet. */
export class WaitingFlows {
  readonly #client: AgentClient;
  readonly #waiting = new Map<number, AbortController>();

  constructor(client: AgentClient) {
    this.#client = client;
  }

  add({ kind: _, flow: id, ...event }: FlowEvent): GuestFlow {
    const gone = new AbortController();
    this.#waiting.set(id, gone);
    return {
      id,
      ...event,
      gone: gone.signal,
      accept: (options = {}) => {
        this.#waiting.delete(id);
        return openTunnel(this.#client, "net.accept", { flow: id }, options);
      },
      refuse: () => {
        if (!this.#waiting.delete(id)) return;
        // A channel that has ended took the flow with it.
        this.#client.call("net.refuse", { flow: id }).catch(() => {});
      },
    };
  }

  isWaiting(id: number): boolean {
    return this.#waiting.has(id);
  }

  gone(id: number): void {
    this.#waiting.get(id)?.abort();
    this.#waiting.delete(id);
  }

  allGone(): void {
    for (const id of [...this.#waiting.keys()]) this.gone(id);
  }
}
