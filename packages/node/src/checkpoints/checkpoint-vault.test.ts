import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import { MemoryStore } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CheckpointRepository } from "../store/checkpoint-repository.ts";
import { CheckpointVault } from "./checkpoint-vault.ts";

const MIB = 1024 * 1024;
const DISK_MIB = 24;
const root = mkdtempSync(join(tmpdir(), "sandpiper-vault-"));
const disk = join(root, "disk");
afterAll(() => rm(root, { recursive: true, force: true }));

const { signal } = new AbortController();

/** With a checkpoint of the given size in it, and a count of the chunks that were read. */
async function vaultWith(sizeMib: number) {
  const reads = { count: 0 };
  const store = new MemoryStore({
    fault: ({ operation, key }) => {
      if (operation === "get" && key.startsWith("chunks/")) reads.count += 1;
      return undefined;
    },
  });
  const repository = new CheckpointRepository({ store, clock: systemClock });
  const vault = new CheckpointVault({ store, repository, directory: join(disk, "vault") });
  const sandbox = createSandboxId();
  const content = randomBytes(sizeMib * MIB);
  const saved = await mkdtemp(join(root, "saved-"));
  await writeFile(join(saved, "image"), content);
  await vault.save(sandbox, "c", saved);
  return { vault, sandbox, content, reads };
}

const isRoot = process.getuid?.() === 0;
describe.skipIf(!isRoot)(`a disk of ${DISK_MIB} MiB (only root can mount one)`, () => {
  beforeAll(() => {
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MIB}m`, "sandpiper-vault", disk]);
  });
  afterAll(() => {
    execFileSync("umount", ["--lazy", disk]);
  });

  it("takes ahead of need what fits on it four times", async () => {
    const { vault, sandbox, reads } = await vaultWith(4);
    await vault.fetchAhead(sandbox, "c", signal);
    expect(reads.count).toBeGreaterThan(0);
    await vault.dropAhead(sandbox);
  });

  it("takes nothing else ahead of need, and what is needed all the same", async () => {
    const { vault, sandbox, content, reads } = await vaultWith(8);
    await vault.fetchAhead(sandbox, "c", signal);
    expect(reads.count).toBe(0);
    await using scratch = await vault.scratch();
    await vault.load(sandbox, "c", scratch.path);
    expect(Buffer.compare(await readFile(join(scratch.path, "image")), content)).toBe(0);
    await vault.dropAhead(sandbox);
  });

  it("is said to be full before anything is saved or restored, and nothing is left on it", async () => {
    const { vault } = await vaultWith(1);
    await writeFile(join(disk, "filler"), randomBytes((DISK_MIB - 4) * MIB));
    await expect(vault.scratch()).rejects.toMatchObject({ code: "resource_exhausted", reason: "disk_full" });
    expect(await readdir(join(disk, "vault"))).toEqual([]);
  });
});
