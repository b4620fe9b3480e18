import { Client, type Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { Random } from "../chaos/random.ts";
import { collectOutput, undisturbed } from "../node/numbered-output.ts";
import type { ClusterBed } from "./cluster-bed.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { handOff } from "./hand-off.ts";
import { startSharedBed } from "./shared-bed.ts";

/** More by hand: SANDPIPER_ROUNDS=50 npm test -- unbroken-output. */
const ROUNDS = Number(process.env["SANDPIPER_ROUNDS"] ?? 3);
const SEED = Number(process.env["SANDPIPER_SEED"] ?? 1);
const ROUND_MS = 60_000;

/** Prints numbered lines in bursts until a file appears, and then their count. */
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

function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => [random.next(), item] as const)
    .toSorted(([one], [other]) => one - other)
    .map(([, item]) => item);
}

interface Round {
  readonly bed: ClusterBed;
  /** A client of the load balancer. */
  readonly client: Client;
  readonly sandbox: Sandbox;
}

/** Waits until a node runs the sandbox. */
async function ownerOf({ bed, client, sandbox }: Round): Promise<ClusterNode> {
  let owner: ClusterNode | undefined;
  const find = async () => {
    const { node } = await sandbox.refresh();
    const url = (await client.nodes.list()).find(({ id }) => id === node)?.url ?? "";
    owner = bed.nodes[Number(/\.1(\d):/.exec(url)?.[1]) - 1];
    return owner;
  };
  await expect.poll(find).toBeDefined();
  return owner as unknown as ClusterNode;
}

const disturbances: Readonly<Record<string, (round: Round, random: Random) => Promise<unknown>>> = {
  cut: async ({ bed }) => {
    for (const node of bed.nodes) {
      await bed.balancer.command(`shutdown sessions server sandpiper/${bed.nameOf(node)}`);
    }
  },
  restart: async (round) => {
    const owner = await ownerOf(round);
    await owner.kill9();
    await owner.start();
  },
  checkpoint: ({ sandbox }) => sandbox.checkpoint(),
  handOff: async (round, random) => {
    const owner = await ownerOf(round);
    const others = round.bed.nodes.filter((node) => node !== owner);
    await handOff(random.pick(others), round.sandbox.id, round.bed.nodes[0].apiKey);
  },
  drain: async (round) => {
    const owner = await ownerOf(round);
    expect(await owner.terminate()).toBe(0);
    await owner.start();
  },
};

describe("a client that reads a program's output", () => {
  it(`receives every line once across cut connections, restarts, checkpoints, handoffs and drains, ${ROUNDS} times`, {
    timeout: ROUNDS * ROUND_MS,
  }, async () => {
    // Long enough to restart a node within its lease, also on a busy machine.
    await using bed = await startSharedBed({ store: "file", env: { SANDPIPER_LEASE_MS: "15000" } });
    const { apiKey } = bed.nodes[0];
    const random = new Random(SEED);
    for (let round = 0; round < ROUNDS; round++) {
      await using client = new Client({ url: bed.url, apiKey });
      await using sandbox = await client.sandboxes.create({ memoryMib: 128 });
      const counting = await sandbox.start(["python3", "-c", COUNT]);
      const output = collectOutput(counting);
      const order = shuffled(Object.keys(disturbances), random);
      const about = `seed ${SEED}, round ${round}: ${order.join(", ")}`;
      for (const name of order) await disturbances[name]?.({ bed, client, sandbox }, random);
      await sandbox.files.write("/tmp/enough", "");
      await expect(output.ended, about).resolves.toBeDefined();
      expect(output.text() === undisturbed(output.text()), about).toBe(true);
      expect(await counting.wait(), about).toMatchObject({ exitCode: 0 });
      expect((await sandbox.refresh()).rolledBackTo, about).toBeNull();
    }
  });

  it("gets data_loss when the sandbox's node dies permanently, and then every line of the restored program", {
    timeout: ROUNDS * ROUND_MS,
  }, async () => {
    await using bed = await startSharedBed({ store: "file" });
    const { apiKey } = bed.nodes[0];
    const random = new Random(SEED);
    for (let round = 0; round < Math.ceil(ROUNDS / 3); round++) {
      await using client = new Client({ url: bed.url, apiKey });
      const checkpointPolicy = { everyMs: 1000 };
      await using sandbox = await client.sandboxes.create({ memoryMib: 128, checkpointPolicy });
      const rollbacks: unknown[] = [];
      sandbox.onRollback((rollback) => rollbacks.push(rollback));
      const counting = await sandbox.start(["python3", "-c", COUNT]);
      const output = collectOutput(counting);
      await expect.poll(async () => (await sandbox.checkpoints()).length).toBeGreaterThan(0);
      // A random moment between two checkpoints.
      await expect.poll(output.lines, { interval: 10 }).toBeGreaterThan(output.lines() + random.between(0, 3000));
      const owner = await ownerOf({ bed, client, sandbox });
      await owner.kill9();

      const about = `seed ${SEED}, round ${round}`;
      await expect(output.ended, about).rejects.toMatchObject({ code: "data_loss", reason: "rolled_back" });
      const again = collectOutput(await sandbox.attach(counting.id));
      await sandbox.files.write("/tmp/enough", "");
      await expect(again.ended, about).resolves.toBeDefined();
      expect(again.text() === undisturbed(again.text()), about).toBe(true);
      expect(isPrefix(output.text()), about).toBe(true);
      expect((await sandbox.refresh()).rolledBackTo, about).not.toBeNull();
      await expect.poll(() => rollbacks).toHaveLength(1);
      await owner.start();
    }
  });
});

/** Whether the text is the beginning of the program's lines. */
function isPrefix(text: string): boolean {
  const lines = text.split("\n");
  const rest = lines.pop() as string;
  return lines.every((line, at) => line === `${at + 1}`) && `${lines.length + 1}`.startsWith(rest);
}
