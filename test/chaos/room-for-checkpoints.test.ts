import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import { MemoryStore } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { CheckpointStore } from "../../packages/node/src/store/checkpoint-store.ts";
import { testKeyring as keyring } from "../../packages/node/src/testing/test-keyring.ts";
import { SmallDisk } from "./small-disk.ts";

const MIB = 1024 * 1024;
const { signal } = new AbortController();

/** A checkpoint store on a disk of 24 MiB, with a checkpoint of the given size, and a count of the chunks read. */
async function openCheckpointStore(sizeMib: number) {
  const cleanUp = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "sandpiper-room-"));
  cleanUp.defer(() => rm(directory, { recursive: true, force: true }));
  const disk = cleanUp.use(await SmallDisk.mount(join(directory, "disk"), 24));
  const reads = { count: 0 };
  const store = new MemoryStore({
    fault: ({ operation, key }) => {
      if (operation === "get" && key.startsWith("chunks/")) reads.count += 1;
      return undefined;
    },
  });
  const checkpointStore = new CheckpointStore({
    store,
    keyring,
    clock: systemClock,
    directory: join(disk.path, "checkpoints"),
  });
  const sandbox = { id: createSandboxId(), tenant: "t" };
  cleanUp.defer(() => checkpointStore.dropPrefetched(sandbox.id));
  const content = randomBytes(sizeMib * MIB);
  const saved = await mkdtemp(join(directory, "saved-"));
  await writeFile(join(saved, "image"), content);
  await checkpointStore.save(sandbox, "c", saved);
  return { checkpointStore, disk, sandbox, content, reads, [Symbol.asyncDispose]: () => cleanUp.disposeAsync() };
}

it("a checkpoint that fits on the disk four times is prefetched", async () => {
  await using opened = await openCheckpointStore(4);
  await opened.checkpointStore.prefetch(opened.sandbox, "c", signal);
  expect(opened.reads.count).toBeGreaterThan(0);
});

it("a checkpoint that does not fit on the disk four times is downloaded only when it is needed", async () => {
  await using opened = await openCheckpointStore(8);
  const { checkpointStore, sandbox } = opened;
  await checkpointStore.prefetch(sandbox, "c", signal);
  expect(opened.reads.count).toBe(0);
  await using scratch = await checkpointStore.scratch();
  await checkpointStore.load(sandbox, "c", scratch.path);
  expect(Buffer.compare(await readFile(join(scratch.path, "image")), opened.content)).toBe(0);
});

it("a nearly full disk is refused with disk_full before anything is saved or restored, and nothing is left on it", async () => {
  await using opened = await openCheckpointStore(1);
  const { checkpointStore, disk } = opened;
  await disk.fill(4 * MIB);
  await expect(checkpointStore.scratch()).rejects.toMatchObject({ code: "resource_exhausted", reason: "disk_full" });
  expect(await readdir(join(disk.path, "checkpoints"))).toEqual([]);
});
