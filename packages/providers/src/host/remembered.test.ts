import { readdir, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { remembered } from "./remembered.ts";
import { freshDirectory } from "./testing/shared.ts";

const directory = freshDirectory("remembered");
const file = join(directory, "file");
let computed: number;
beforeEach(async () => {
  await writeFile(file, "one");
  computed = 0;
});

const ask = (fact = "size", files = [file]) =>
  remembered({ directory: join(directory, "known"), fact, files }, async () => `${++computed}`);

it("computes a fact about files once, and each fact separately", async () => {
  expect([await ask(), await ask(), await ask("name"), await ask()]).toEqual(["1", "1", "2", "1"]);
  expect(await readdir(join(directory, "known"))).toHaveLength(2);
});

it("computes a fact again for a changed file, even if its time was reset", async () => {
  await ask();
  const { atime, mtime } = await stat(file);
  await writeFile(file, "two");
  await utimes(file, atime, mtime);
  expect(await ask()).toBe("2");
});

it("does not keep a fact about a missing file", async () => {
  const missing = [join(directory, "none")];
  expect([await ask("size", missing), await ask("size", missing)]).toEqual(["1", "2"]);
});

it("returns the fact where nothing can be stored", async () => {
  await writeFile(join(directory, "known"), "no directory");
  expect([await ask(), await ask()]).toEqual(["1", "2"]);
});
