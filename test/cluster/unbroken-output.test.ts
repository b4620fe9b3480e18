import { Client, type Process, type Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import type { ClusterBed } from "./cluster-bed.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { handOff } from "./hand-off.ts";
import { startSharedBed } from "./shared-bed.ts";

/** More by hand: SANDPIPER_ROUNDS=50 npm test -- unbroken-output. */
const ROUNDS = Number(process.env["SANDPIPER_ROUNDS"] ?? 6);
const SEED = Number(process.env["SANDPIPER_SEED"] ?? 1);
const ROUND_MS = 60_000;

/** Writes numbered lines until it is told to stop, in bursts with pauses, and ends with how many there were. */
const COUNT = `
import os, sys, time
n = 0
while not os.path.exists("/tmp/enough"):
    sys.stdout.write("".join(f"{n + k}\\n" for k in range(1, 21)))
    sys.stdout.flush()
    n += 20
    time.sleep(0.004)
print("total", n)
`;

/** The same for the same seed, so that a failure can be looked at again. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => [random(), item] as const)
    .toSorted(([one], [other]) => one - other)
    .map(([, item]) => item);
}

/** What a program that was not disturbed would have written, up to where this one ended. */
function whole(text: string): string {
  const total = Number(/total (\d+)\n$/.exec(text)?.[1]);
  return `${Array.from({ length: total }, (_, at) => `${at + 1}\n`).join("")}total ${total}\n`;
}

/** Reads to the end, or to the error that ended it. */
async function readAll(counting: Process): Promise<{ readonly text: string; readonly error?: unknown }> {
  const pieces: Uint8Array[] = [];
  const text = () => Buffer.concat(pieces).toString();
  try {
    for await (const bytes of counting.stdout) pieces.push(bytes);
    return { text: text() };
  } catch (error) {
    return { text: text(), error };
  }
}

class Round {
  readonly #bed: ClusterBed;
  readonly #apiKey: string;
  readonly #sandbox: Sandbox;
  readonly #random: () => number;

  constructor(bed: ClusterBed, sandbox: Sandbox, { apiKey, random }: { apiKey: string; random: () => number }) {
    this.#bed = bed;
    this.#sandbox = sandbox;
    this.#apiKey = apiKey;
    this.#random = random;
  }

  /** The node that has the sandbox, once one has. */
  async owner(): Promise<ClusterNode> {
    await using client = new Client({ url: this.#bed.url, apiKey: this.#apiKey });
    for (;;) {
      const { node } = await this.#sandbox.refresh();
      const url = (await client.nodes.list()).find(({ id }) => id === node)?.url ?? "";
      const owner = this.#bed.nodes[Number(/\.1(\d):/.exec(url)?.[1]) - 1];
      if (owner !== undefined) return owner;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  readonly disturbances: Readonly<Record<string, () => Promise<unknown>>> = {
    cut: async () => {
      for (const node of this.#bed.nodes) {
        await this.#bed.balancer.command(`shutdown sessions server sandpiper/${this.#bed.nameOf(node)}`);
      }
    },
    restart: async () => {
      const owner = await this.owner();
      await owner.kill9();
      await owner.start();
    },
    checkpoint: () => this.#sandbox.checkpoint(),
    handOff: async () => {
      const owner = await this.owner();
      const others = this.#bed.nodes.filter((node) => node !== owner);
      await handOff(others[Math.floor(this.#random() * others.length)] as ClusterNode, this.#sandbox.id, this.#apiKey);
    },
    drain: async () => {
      const owner = await this.owner();
      expect(await owner.terminate()).toBe(0);
      await owner.start();
    },
  };
}

describe("a program that writes numbered lines", () => {
  it(`is read without a loss or a repetition whatever happens between it and its reader, ${ROUNDS} times`, {
    timeout: ROUNDS * ROUND_MS,
  }, async () => {
    // Long enough for a node to be started again within its lease, also on a busy machine.
    await using bed = await startSharedBed({ store: "file", env: { SANDPIPER_LEASE_MS: "15000" } });
    const { apiKey } = bed.nodes[0] as ClusterNode;
    const random = randomOf(SEED);
    for (let round = 0; round < ROUNDS; round++) {
      await using client = new Client({ url: bed.url, apiKey });
      await using sandbox = await client.sandboxes.create({ memoryMib: 128 });
      const counting = await sandbox.start(["python3", "-c", COUNT]);
      const reading = readAll(counting);
      const { disturbances } = new Round(bed, sandbox, { apiKey, random });
      const order = shuffled(Object.keys(disturbances), random);
      const about = `seed ${SEED}, round ${round}: ${order.join(", ")}`;
      for (const name of order) await disturbances[name]?.();
      await sandbox.files.write("/tmp/enough", "");
      const { text, error } = await reading;
      expect(error, about).toBeUndefined();
      expect(text === whole(text), about).toBe(true);
      expect(await counting.wait(), about).toMatchObject({ exitCode: 0 });
      expect((await sandbox.refresh()).rolledBackTo, about).toBeNull();
    }
  });

  it("is told to have been set back when its node is killed for good, and is whole from there on", {
    timeout: ROUNDS * ROUND_MS,
  }, async () => {
    await using bed = await startSharedBed({ store: "file" });
    const { apiKey } = bed.nodes[0] as ClusterNode;
    const random = randomOf(SEED);
    for (let round = 0; round < Math.ceil(ROUNDS / 3); round++) {
      await using client = new Client({ url: bed.url, apiKey });
      const checkpointPolicy = { everyMs: 1000 };
      await using sandbox = await client.sandboxes.create({ memoryMib: 128, checkpointPolicy });
      const told: unknown[] = [];
      sandbox.onRollback((rollback) => told.push(rollback));
      const counting = await sandbox.start(["python3", "-c", COUNT]);
      const reading = readAll(counting);
      await expect.poll(async () => (await sandbox.checkpoints()).length).toBeGreaterThan(0);
      await new Promise((resolve) => setTimeout(resolve, random() * 1000));
      const owner = await new Round(bed, sandbox, { apiKey, random }).owner();
      await owner.kill9();

      const about = `seed ${SEED}, round ${round}`;
      const { text, error } = await reading;
      expect(error, about).toMatchObject({ code: "data_loss", reason: "rolled_back" });
      const again = await sandbox.attach(counting.id);
      const rereading = readAll(again);
      await sandbox.files.write("/tmp/enough", "");
      const reread = await rereading;
      expect(reread.error, about).toBeUndefined();
      expect(reread.text === whole(reread.text), about).toBe(true);
      expect(isPrefix(text), about).toBe(true);
      expect((await sandbox.refresh()).rolledBackTo, about).not.toBeNull();
      await expect.poll(() => told).toHaveLength(1);
      await owner.start();
    }
  });
});

/** Of the lines that the program writes, cut anywhere. */
function isPrefix(text: string): boolean {
  const lines = text.split("\n");
  const rest = lines.pop() as string;
  return lines.every((line, at) => line === `${at + 1}`) && `${lines.length + 1}`.startsWith(rest);
}
