import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "./fault.ts";

const killed =
  (downMs: (leaseMs: number) => readonly [number, number]): Fault["inject"] =>
  async ({ bed, random, log }) => {
    const node = random.pick(bed.nodes);
    const awayMs = random.between(...downMs(bed.leaseMs));
    log(`kill -9 ${node.name}, down for ${awayMs} ms`);
    await node.kill9();
    await sleep(awayMs);
    await node.revive();
  };

const stopped: Fault["inject"] = async ({ bed, random, log }) => {
  const node = random.pick(bed.nodes);
  const forMs = bed.leaseMs + random.between(300, 2500);
  log(`SIGSTOP ${node.name} for ${forMs} ms`);
  node.freeze();
  await sleep(forMs);
  node.thaw();
};

const drained: Fault["inject"] = async ({ bed, random, log }) => {
  const node = random.pick(bed.nodes);
  const awayMs = random.between(0, 1000);
  log(`SIGTERM ${node.name}, down for ${awayMs} ms`);
  await node.terminate();
  await sleep(awayMs);
  await node.revive();
};

export const nodeFaults: readonly Fault[] = [
  { area: "node", kind: "node: kill -9", inject: killed(() => [0, 800]) },
  {
    area: "node",
    kind: "node: kill -9 for longer than its leases",
    inject: killed((leaseMs) => [leaseMs + 300, leaseMs + 2500]),
  },
  { area: "node", kind: "node: SIGSTOP for longer than its leases", inject: stopped },
  { area: "node", kind: "node: SIGTERM", inject: drained },
];
