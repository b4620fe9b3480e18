import { type Clock, type GuestNetwork, type Sandbox, SandboxError } from "@sandpiper/core";
import { isNoNetwork, type NetworkPolicy, type SandboxId } from "@sandpiper/protocol";
import { Egress } from "./egress.ts";
import type { EgressParts } from "./egress-parts.ts";
import type { FlowOwner } from "./flow-sink.ts";

export interface NetworksOptions {
  readonly parts: Omit<EgressParts, "takeConnection">;
  /** Open connections of all sandboxes together; 0 for no limit. */
  readonly maxConnections: number;
  /** Receives failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** What a network needs of a sandbox. */
export type NetworkedSandbox = Pick<Sandbox, "id" | "state" | "network">;

/** Between two attempts to serve the network of a sandbox whose agent did not answer. */
const RETRY_MS = 1000;

/** The networks of the sandboxes that run on this node. */
export class Networks {
  readonly #options: NetworksOptions;
  readonly #served = new Map<SandboxId, ServedSandbox>();
  #openConnections = 0;

  constructor(options: NetworksOptions) {
    this.#options = options;
  }

  get openConnections(): number {
    return this.#openConnections;
  }

  /** Serves the network of a sandbox until disposed; then its connections end. */
  serve(sandbox: NetworkedSandbox, tenant: string, policy: NetworkPolicy): Disposable {
    const { onError, parts } = this.#options;
    const served = new ServedSandbox({
      sandbox,
      owner: { sandboxId: sandbox.id, tenant },
      parts: { ...parts, takeConnection: () => this.#takeConnection() },
      onError: (error) => onError(error, sandbox.id),
    });
    this.#served.set(sandbox.id, served);
    served.update(policy);
    return {
      [Symbol.dispose]: () => {
        if (this.#served.get(sandbox.id) === served) this.#served.delete(sandbox.id);
        served.close();
      },
    };
  }

  /** Applies at once, also to open connections. Does nothing for a sandbox that does not run here. */
  update(id: SandboxId, policy: NetworkPolicy): void {
    this.#served.get(id)?.update(policy);
  }

  #takeConnection(): Disposable | undefined {
    const { maxConnections } = this.#options;
    if (maxConnections > 0 && this.#openConnections >= maxConnections) return undefined;
    this.#openConnections++;
    return { [Symbol.dispose]: () => void this.#openConnections-- };
  }
}

interface ServedSandboxOptions {
  readonly sandbox: NetworkedSandbox;
  readonly owner: FlowOwner;
  readonly parts: EgressParts;
  readonly onError: (error: SandboxError) => void;
}

/** Has the agent of a sandbox announce connections while its policy can allow any; otherwise the agent refuses them. */
class ServedSandbox {
  readonly #options: ServedSandboxOptions;
  #egress: Egress | undefined;
  #guest: GuestNetwork | undefined;
  #stopRetry = () => {};
  #isClosed = false;

  constructor(options: ServedSandboxOptions) {
    this.#options = options;
  }

  update(policy: NetworkPolicy): void {
    if (isNoNetwork(policy)) {
      this.#end("policy_changed");
      return;
    }
    if (this.#egress !== undefined) {
      this.#egress.update(policy);
      return;
    }
    const { owner, parts } = this.#options;
    this.#egress = new Egress({ owner, policy, parts });
    this.#open(this.#egress);
  }

  close(): void {
    this.#isClosed = true;
    this.#end("sandbox_ended");
  }

  #end(reason: "policy_changed" | "sandbox_ended"): void {
    this.#stopRetry();
    this.#egress?.close(reason);
    this.#guest?.close();
    this.#egress = undefined;
    this.#guest = undefined;
  }

  async #open(egress: Egress): Promise<void> {
    const { sandbox, parts, onError } = this.#options;
    try {
      const guest = await sandbox.network(egress);
      if (this.#egress !== egress) guest.close();
      else this.#guest = guest;
    } catch (thrown) {
      if (this.#isClosed || this.#egress !== egress || sandbox.state !== "ready") return;
      const error = SandboxError.from(thrown);
      onError(error);
      if (error.code !== "unimplemented") this.#stopRetry = retry(parts.clock, () => this.#open(egress));
    }
  }
}

function retry(clock: Clock, work: () => void): () => void {
  return clock.schedule(RETRY_MS, work);
}
