import type { GuestDatagram, GuestFlow, GuestQuery, NetworkHandler } from "@sandpiper/core";
import type { FlowReason, NetworkPolicy } from "@sandpiper/protocol";
import { CompiledPolicy } from "./compiled-policy.ts";
import type { EgressParts } from "./egress-parts.ts";
import { FlowMeter } from "./flow-meter.ts";
import { FlowRecords } from "./flow-records.ts";
import type { FlowOwner } from "./flow-sink.ts";
import { GuestQueries } from "./guest-queries.ts";
import { OutgoingFlow } from "./outgoing-flow.ts";
import { TokenBucket } from "./token-bucket.ts";

export interface EgressOptions {
  readonly owner: FlowOwner;
  readonly policy: NetworkPolicy;
  readonly parts: EgressParts;
}

/** As many as an agent announces at once, with room for its other calls. */
const MAX_CONNECTIONS = 768;

/** Everything that leaves one sandbox. */
export class Egress implements NetworkHandler {
  readonly #options: EgressOptions;
  readonly #records: FlowRecords;
  readonly #queries: GuestQueries;
  readonly #meter: FlowMeter;
  readonly #connections: TokenBucket;
  readonly #flows = new Set<OutgoingFlow>();
  #policy: NetworkPolicy;
  #compiled: CompiledPolicy;

  constructor(options: EgressOptions) {
    this.#options = options;
    const { owner, policy, parts } = options;
    const { clock, sink } = parts;
    const { limits } = policy;
    this.#policy = policy;
    this.#compiled = new CompiledPolicy(policy, parts.bundles);
    this.#records = new FlowRecords({ owner, sink, clock });
    this.#queries = new GuestQueries({ parts, limits, records: this.#records, policy: () => this.#compiled });
    this.#meter = new FlowMeter(limits, { clock, onExhausted: () => this.#cutAll("byte_limit") });
    this.#connections = new TokenBucket(limits.maxConnectionsPerSecond, clock);
  }

  get openFlows(): number {
    return this.#flows.size;
  }

  /** Applies at once, also to open flows. */
  update(policy: NetworkPolicy): void {
    this.#policy = policy;
    this.#compiled = new CompiledPolicy(policy, this.#options.parts.bundles);
    this.#queries.setLimits(policy.limits);
    this.#connections.setLimit(policy.limits.maxConnectionsPerSecond);
    this.#meter.setLimits(policy.limits);
    for (const flow of [...this.#flows]) flow.reconsider();
  }

  /** Cuts every flow. */
  close(reason: FlowReason): void {
    this.#cutAll(reason);
    this.#records.flush();
  }

  onFlow(guest: GuestFlow): void {
    const { owner, parts } = this.#options;
    const admitted = this.#admit();
    if (typeof admitted === "string") {
      this.#refuse(guest, admitted);
      return;
    }
    const policy = () => this.#compiled;
    const flow = new OutgoingFlow({ guest, owner, parts, policy, records: this.#records, meter: this.#meter });
    this.#flows.add(flow);
    flow.run().finally(() => {
      this.#flows.delete(flow);
      admitted[Symbol.dispose]();
    });
  }

  onQuery(query: GuestQuery): void {
    this.#queries.serve(query);
  }

  onDatagram({ address, port, count }: GuestDatagram): void {
    this.#records.record({ kind: "datagram", decision: "denied", reason: "datagram", address, port, count });
  }

  /** Takes a connection within the limits, or returns the limit that is reached. */
  #admit(): Disposable | FlowReason {
    const { maxConnections } = this.#policy.limits;
    if (this.#meter.isExhausted) return "byte_limit";
    if (this.#flows.size >= Math.min(maxConnections ?? MAX_CONNECTIONS, MAX_CONNECTIONS)) return "connection_limit";
    if (!this.#connections.tryTake()) return "connection_rate_limit";
    return this.#options.parts.takeConnection() ?? "connection_limit";
  }

  #refuse(guest: GuestFlow, reason: FlowReason): void {
    guest.refuse();
    const { name, port, pid, program } = guest;
    const address = name === null ? guest.address : null;
    this.#records.record({ kind: "flow", decision: "denied", reason, name, address, port, pid, program });
  }

  #cutAll(reason: FlowReason): void {
    for (const flow of [...this.#flows]) flow.cut(reason);
  }
}
