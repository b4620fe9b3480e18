import { setTimeout as sleep } from "node:timers/promises";
import { type ChaosBed, LEASE_MS } from "./chaos-bed.ts";
import type { Random } from "./random.ts";
import type { SmallDisk } from "./small-disk.ts";

interface FaultContext {
  readonly bed: ChaosBed;
  readonly random: Random;
  readonly log: (line: string) => void;
}

/** Injects a fault for a while and repairs it. */
export type Fault = (context: FaultContext) => Promise<void>;

const MIB = 1024 * 1024;

const killed =
  (leastMs: number, mostMs: number): Fault =>
  async ({ bed, random, log }) => {
    const node = random.pick(bed.nodes);
    const awayMs = random.between(leastMs, mostMs);
    log(`kill -9 ${node.name}, down for ${awayMs} ms`);
    await node.kill9();
    await sleep(awayMs);
    await node.revive();
  };

const frozen: Fault = async ({ bed, random, log }) => {
  const node = random.pick(bed.nodes);
  const forMs = LEASE_MS + random.between(300, 2500);
  log(`SIGSTOP ${node.name} for ${forMs} ms`);
  node.freeze();
  await sleep(forMs);
  node.thaw();
};

const drained: Fault = async ({ bed, random, log }) => {
  const node = random.pick(bed.nodes);
  log(`SIGTERM ${node.name}`);
  await node.terminate();
  await sleep(random.between(0, 1000));
  await node.revive();
};

const storeTrouble: Fault = async ({ bed, random, log }) => {
  const { proxy } = bed.shared;
  if (proxy === undefined) return;
  const worst = random.pick([0.2, 0.5, 1]);
  const kind = random.pick(["errors", "cuts", "lostAnswers", "delays"] as const);
  const forMs = random.between(500, LEASE_MS * 2);
  log(`store: ${kind} ${worst} for ${forMs} ms`);
  const share = (name: string) => (kind === name ? worst : 0);
  proxy.trouble = {
    errors: share("errors"),
    cuts: share("cuts"),
    lostAnswers: share("lostAnswers"),
    delayMs: kind === "delays" ? worst * LEASE_MS : 0,
  };
  await sleep(forMs);
  proxy.heal();
};

const diskFull: Fault = async ({ bed, random, log }) => {
  const disks = [...bed.nodes.map(({ disk }) => disk), bed.shared.disk].filter((disk) => disk !== undefined);
  const disk: SmallDisk = random.pick(disks);
  const left = random.pick([0, 0, MIB]);
  const forMs = random.between(500, LEASE_MS * 2);
  log(`disk ${disk.path} full except for ${left} bytes, for ${forMs} ms`);
  await disk.fill(left);
  await sleep(forMs);
  await disk.free();
};

/** A fault that appears twice is picked twice as often. */
export const faults: readonly (readonly [string, Fault])[] = [
  ["kill", killed(0, 800)],
  ["kill for longer than the lease", killed(LEASE_MS + 300, LEASE_MS + 2500)],
  ["freeze", frozen],
  ["drain", drained],
  ["store trouble", storeTrouble],
  ["full disk", diskFull],
  ["nothing", async () => {}],
];
