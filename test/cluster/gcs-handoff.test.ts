import { expect, it } from "vitest";
import { collectOutput, countTo, numbersTo } from "../node/numbered-output.ts";
import { handOff } from "./hand-off.ts";
import { startSharedBed } from "./shared-bed.ts";

it("hands a sandbox off through Google Cloud Storage while a program in it prints, without a gap", async () => {
  await using bed = await startSharedBed({ store: "gcs" });
  const [first, second] = bed.nodes;
  const sandbox = await first.client().sandboxes.create({ memoryMib: 128 });
  await sandbox.exec("echo kept > ~/file");
  const counting = collectOutput(await sandbox.start(countTo(100)));
  await expect.poll(counting.lines, { timeout: 10_000 }).toBeGreaterThan(5);
  await handOff(second, sandbox.id, first.apiKey);
  const [holder] = (await second.client(first.apiKey).nodes.list()).filter(({ isThisNode }) => isThisNode);
  expect((await sandbox.refresh()).node).toBe(holder?.id);
  expect(await counting.ended).toBe(numbersTo(100));
  expect((await sandbox.exec("cat ~/file")).stdout).toBe("kept\n");
});
