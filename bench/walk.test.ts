import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { walk } from "./walk.ts";

describe("walk", () => {
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "walk-"));
  });

  afterEach(() => rm(dir, { recursive: true }));

  it("finds files and directories at any depth", async () => {
    await mkdir(join(dir, "a/b"), { recursive: true });
    await writeFile(join(dir, "a/b/c"), "");
    expect((await walk(dir)).map((entry) => entry.name)).toEqual(["a", "b", "c"]);
  });

  it("lists a link and does not follow it", async () => {
    await mkdir(join(dir, "outside"));
    await writeFile(join(dir, "outside/secret"), "");
    await mkdir(join(dir, "inside"));
    await symlink("../outside", join(dir, "inside/link"));
    expect((await walk(join(dir, "inside"))).map((entry) => entry.name)).toEqual(["link"]);
  });

  it("finds nothing in a missing directory", async () => {
    expect(await walk(join(dir, "missing"))).toEqual([]);
  });
});
