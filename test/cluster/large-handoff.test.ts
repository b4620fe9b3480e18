import { expect, it } from "vitest";
import { handOff } from "./hand-off.ts";
import { startSharedBed } from "./shared-bed.ts";

it.each(["s3", "file"] as const)(
  "a handoff of a large sandbox saves it once while it runs and once stopped, and keeps its files (%s)",
  async (store) => {
    await using bed = await startSharedBed({ store });
    const [first, second] = bed.nodes;
    const sandbox = await first.client().sandboxes.create({ memoryMib: 512 });
    const { stdout: expected } = await sandbox.exec("head -c 100M /dev/urandom > /tmp/large; sha256sum < /tmp/large");
    for (const target of [second, first]) {
      const before = (await sandbox.checkpoints()).map(({ id }) => id);
      await handOff(target, sandbox.id, first.apiKey);
      const made = (await sandbox.checkpoints()).filter(({ id }) => !before.includes(id));
      expect(made.map(({ isAutomatic }) => isAutomatic)).toEqual([true, true]);
      expect((await sandbox.exec("sha256sum < /tmp/large")).stdout).toBe(expected);
    }
  },
  120_000,
);
