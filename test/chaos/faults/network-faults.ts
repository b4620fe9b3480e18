import { setTimeout as sleep } from "node:timers/promises";
import type { ChaosNode } from "../chaos-node.ts";
import type { NetworkProxy, NetworkTrouble } from "../network-proxy.ts";
import type { Fault } from "./fault.ts";

const WAYS = {
  /** Between the clients and a node. */
  "client to node": ({ clientSide }: ChaosNode) => clientSide,
  /** Between the other nodes and a node. */
  "node to node": ({ nodeSide }: ChaosNode) => nodeSide,
} as const satisfies Record<string, (node: ChaosNode) => NetworkProxy>;

const troubled =
  (way: keyof typeof WAYS, kind: NetworkTrouble["kind"]): Fault["inject"] =>
  async ({ bed, random, log }) => {
    const node = random.pick(bed.nodes);
    const delayMs = random.between(100, 1000);
    const forMs = random.between(500, 5000);
    log(`${way} ${node.name}: ${kind}${kind === "delay" ? ` of ${delayMs} ms` : ""} for ${forMs} ms`);
    const network = WAYS[way](node);
    network.disturb({ kind, delayMs });
    await sleep(forMs);
    network.heal();
  };

export const networkFaults: readonly Fault[] = (["client to node", "node to node"] as const).flatMap((way) =>
  (["cut", "delay", "stall"] as const).map((kind) => ({
    area: "network" as const,
    kind: `network: ${kind}, ${way}`,
    inject: troubled(way, kind),
  })),
);
