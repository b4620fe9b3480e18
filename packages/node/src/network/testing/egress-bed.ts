import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { systemClock } from "@sandpiper/core";
import {
  completeNetwork,
  createSandboxId,
  type DnsOutcome,
  type FlowRecord,
  type NetworkBody,
} from "@sandpiper/protocol";
import { type ApprovalRequest, denyAll } from "../approvals.ts";
import { Egress } from "../egress.ts";
import type { EgressParts } from "../egress-parts.ts";
import { noInterceptor } from "../interceptor.ts";
import { ReachableAddresses } from "../reachable-addresses.ts";
import type { Resolution } from "../resolver.ts";
import { FakeFlow, type FakeFlowOptions } from "./fake-flow.ts";

export interface EgressBedOptions {
  readonly network: NetworkBody;
  readonly names?: Readonly<Record<string, readonly string[]>>;
  readonly allowedCidrs?: readonly string[];
  readonly parts?: Partial<EgressParts>;
}

/** The egress of one sandbox with real connections to servers on loopback, and names that a test chooses. */
export class EgressBed implements AsyncDisposable {
  readonly records: { readonly opened: FlowRecord[]; readonly closed: FlowRecord[] } = { opened: [], closed: [] };
  readonly resolved: string[] = [];
  readonly asked: ApprovalRequest[] = [];
  readonly egress: Egress;
  readonly owner = { sandboxId: createSandboxId(), tenant: "default" };
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor({ network, names = {}, allowedCidrs = ["127.0.0.0/8"], parts = {} }: EgressBedOptions) {
    const resolve = (name: string): Resolution => {
      this.resolved.push(name);
      const addresses = names[name];
      return addresses === undefined ? { kind: "not_found" } : { kind: "addresses", addresses };
    };
    this.egress = new Egress({
      owner: this.owner,
      policy: completeNetwork(network),
      parts: {
        clock: systemClock,
        bundles: {},
        reachable: new ReachableAddresses({ allowedCidrs }),
        resolver: { resolve },
        approvals: denyAll,
        interceptor: noInterceptor,
        sink: {
          opened: (record) => void this.records.opened.push(record),
          closed: (record) => void this.records.closed.push(record),
        },
        takeConnection: () => ({ [Symbol.dispose]() {} }),
        ...parts,
      },
    });
  }

  /** Starts a server on loopback and returns its port. */
  async serve(onConnection: (socket: Socket) => void, host = "127.0.0.1"): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      onConnection(socket);
    });
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    return (server.address() as AddressInfo).port;
  }

  /** How many connections servers have accepted. */
  get accepted(): number {
    return this.#sockets.size;
  }

  open(options: FakeFlowOptions): FakeFlow {
    const flow = new FakeFlow(options);
    this.egress.onFlow(flow);
    return flow;
  }

  query(name: string, type = "A"): Promise<DnsOutcome> {
    return new Promise((answer) => this.egress.onQuery({ name, type, answer }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.egress.close("sandbox_ended");
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

export function echo(socket: Socket): void {
  socket.pipe(socket);
}
