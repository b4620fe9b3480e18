import type { Clock } from "@sandpiper/core";
import type { Approvals } from "./approvals.ts";
import type { Bundles } from "./compiled-policy.ts";
import type { FlowSink } from "./flow-sink.ts";
import type { Interceptor } from "./interceptor.ts";
import type { ReachableAddresses } from "./reachable-addresses.ts";
import type { Resolver } from "./resolver.ts";

/** What the sandboxes of a node share on the network. */
export interface EgressParts {
  readonly clock: Clock;
  readonly bundles: Bundles;
  readonly reachable: Pick<ReachableAddresses, "isReachable">;
  readonly resolver: Pick<Resolver, "resolve">;
  readonly approvals: Approvals;
  readonly interceptor: Interceptor;
  readonly sink: FlowSink;
  /** Takes one of the node's connections until disposed; undefined if all are in use. */
  readonly takeConnection: () => Disposable | undefined;
}
