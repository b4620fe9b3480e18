import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { mkdir, readdir, rm, unlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeStore, rejection } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DirectoryStore } from "./directory-store.ts";

const root = mkdtempSync(join(tmpdir(), "sandpiper-store-"));
afterAll(() => rm(root, { recursive: true, force: true }));

describeStore("directory", () => new DirectoryStore(join(root, "contract")), {
  framework: { describe, it, beforeAll, afterAll, expect },
});

describe("a directory store that several processes share", () => {
  it("loses no acknowledged write when they are killed in the middle of writing", async () => {
    const directory = join(root, "killed");
    const store = new DirectoryStore(directory);
    await store.put("shared/counter", Buffer.from("0"));
    const program = fileURLToPath(new URL("testing/count-up.ts", import.meta.url));
    let acknowledged = 0;
    const deaths = Array.from({ length: 6 }, async (_, index) => {
      const child = spawn(process.execPath, [program, directory], { stdio: ["ignore", "pipe", "inherit"] });
      let steps = 0;
      child.stdout.on("data", (text: Buffer) => {
        steps += text.length;
        if (steps >= 10 + index * 7) child.kill("SIGKILL");
      });
      await once(child, "close");
      acknowledged += steps;
    });
    await Promise.all(deaths);
    const counted = Number(Buffer.from((await store.get("shared/counter"))?.bytes ?? []).toString());
    expect(acknowledged).toBeGreaterThan(60);
    expect(counted).toBeGreaterThanOrEqual(acknowledged);
    // Each process may have written once more without reporting it.
    expect(counted).toBeLessThanOrEqual(acknowledged + deaths.length);
    expect(await store.put("shared/counter", Buffer.from("free"))).toBeTypeOf("string");
  });
});

describe("the leftovers of a dead writer", () => {
  const longAgo = new Date(Date.now() - 7_200_000);

  it("are removed when they are old, and kept while they may belong to a write in progress", async () => {
    const directory = join(root, "left");
    const staging = join(directory, "staging%%");
    await mkdir(join(staging, "old"), { recursive: true });
    await mkdir(join(staging, "young"));
    await utimes(join(staging, "old"), longAgo, longAgo);
    const store = new DirectoryStore(directory);
    await store.put("a/b", Buffer.from("1"));
    expect(await readdir(staging)).toEqual(["young"]);

    await writeFile(join(directory, "a/b%/data.old"), "x");
    await writeFile(join(directory, "a/b%/data.young"), "x");
    await utimes(join(directory, "a/b%/data.old"), longAgo, longAgo);
    const object = await store.get("a/b");
    expect((await readdir(join(directory, "a/b%"))).sort()).toEqual(
      [`current.${object?.tag}`, `data.${object?.tag}`, "data.young"].sort(),
    );
  });

  it("do not block a new object after an interrupted deletion", async () => {
    const directory = join(root, "cut");
    const store = new DirectoryStore(directory);
    const tag = await store.put("a/b", Buffer.from("1"));
    await unlink(join(directory, `a/b%/current.${tag}`));
    expect(await store.get("a/b")).toBe(undefined);
    expect(await store.put("a/b", Buffer.from("2"), { ifAbsent: true })).toBeTypeOf("string");
    expect(Buffer.from((await store.get("a/b"))?.bytes ?? []).toString()).toBe("2");
  });

  it("fail a read if the data is missing, until the next write repairs the object", async () => {
    const directory = join(root, "torn");
    const store = new DirectoryStore(directory);
    const tag = await store.put("a/b", Buffer.from("1"));
    await unlink(join(directory, `a/b%/data.${tag}`));
    expect(await rejection(store.get("a/b"))).toMatchObject({ code: "data_loss", reason: "object_damaged" });
    await store.put("a/b", Buffer.from("2"));
    expect((await store.get("a/b"))?.size).toBe(1);
  });
});

describe("a directory store", () => {
  it("reports store_misplaced when a parent of its directory is a file", async () => {
    const path = join(root, "file");
    await writeFile(path, "");
    const store = new DirectoryStore(join(path, "store"));
    expect(await rejection(store.put("a", Buffer.from("1")))).toMatchObject({
      code: "failed_precondition",
      reason: "store_misplaced",
    });
  });

  it("keeps a chunk that is written without a lookup", async () => {
    const { chunks } = new DirectoryStore(join(root, "chunks"));
    const hash = "a".repeat(64);
    for (const content of ["1", "2"]) {
      const session = chunks.openSession();
      await session.put(hash, [Buffer.from(content)]);
      await session.commit();
      expect(Buffer.from((await chunks.openSession().get(hash)) ?? []).toString()).toBe(content);
    }
    expect(await Array.fromAsync(chunks.list())).toHaveLength(1);
  });

  it("does not follow a path in a tag", async () => {
    const directory = join(root, "tags");
    const store = new DirectoryStore(directory);
    await store.put("a/b", Buffer.from("1"));
    await store.put("victim/c", Buffer.from("1"));
    const victim = (await store.head("victim/c"))?.tag ?? "";
    const hostile = `/../../../victim/c%/current.${victim}`;
    expect(await store.delete("a/b", { ifMatch: hostile })).toBe(false);
    expect(await store.put("a/b", Buffer.from("2"), { ifMatch: hostile })).toBe(undefined);
    expect((await store.head("victim/c"))?.tag).toBe(victim);
  });
});

it("keeps a chunk that was put without a lookup, and removes its older copies", async () => {
  const { chunks } = new DirectoryStore(join(root, "put-only"));
  const hash = "ab".repeat(32);
  for (const content of ["first", "second"]) {
    const session = chunks.openSession();
    await session.put(hash, [Buffer.from(content)]);
    await session.commit();
    expect(Buffer.from((await chunks.openSession().get(hash)) ?? []).toString()).toBe(content);
  }
  expect(await Array.fromAsync(chunks.list())).toHaveLength(1);
});
