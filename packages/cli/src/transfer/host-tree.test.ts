import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { walkHostTree } from "./host-tree.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "sandpiper-tree-"));
  await mkdir(join(directory, "b/empty"), { recursive: true });
  await writeFile(join(directory, "b/file"), "");
  await chmod(join(directory, "b/file"), 0o640);
  await symlink("/", join(directory, "a"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe("a tree on this machine", () => {
  it("is walked in order, each directory before its contents, without following links", async () => {
    const entries = await Array.fromAsync(walkHostTree(directory));
    expect(entries.map(({ path, kind }) => [path, kind])).toEqual([
      ["", "directory"],
      ["a", "symlink"],
      ["b", "directory"],
      ["b/empty", "directory"],
      ["b/file", "file"],
    ]);
    expect(entries.find(({ path }) => path === "a")?.target).toBe("/");
    expect(entries.find(({ path }) => path === "b/file")?.mode).toBe(0o640);
  });
});
