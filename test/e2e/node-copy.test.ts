import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { useNode } from "./node-process.ts";
import { startCli } from "./run-cli.ts";

const node = await useNode();
const scratch = sharedDirectory("e2e");
const bytes = randomBytes(2 * 1024 * 1024 + 7);
let directory: string;

/** In the directory that holds the tree to copy. */
const run = (...argv: string[]) => node.run(argv, { cwd: directory });

beforeAll(async () => {
  directory = await mkdtemp(join(scratch, "copy-"));
  await mkdir(join(directory, "tree/below"), { recursive: true });
  await writeFile(join(directory, "tree/below/bytes"), bytes);
  await writeFile(join(directory, "tree/program"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
  await symlink("program", join(directory, "tree/link"));
  expect(await run("create", "--name", "box")).toMatchObject({ stderr: "", exitCode: 0 });
});

describe("sandpiper cp", () => {
  it("copies a directory in and out again with its bytes and modes", async () => {
    expect(await run("cp", "tree", "box:/srv/copied")).toMatchObject({ stdout: "", stderr: "", exitCode: 0 });
    expect((await run("exec", "box", "--", "/srv/copied/link")).stdout).toBe("ran\n");
    const { exitCode, stderr } = await run("cp", "box:/srv/copied", "back");
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('"/srv/copied/link" (symlink)')]);
    expect(await readFile(join(directory, "back/below/bytes"))).toEqual(bytes);
    expect((await stat(join(directory, "back/program"))).mode & 0o777).toBe(0o755);
  });

  it("copies into an existing directory, as cp does", async () => {
    await run("cp", "tree/program", "box:");
    expect((await run("exec", "box", "--", "./program")).stdout).toBe("ran\n");
    await run("cp", "box:program", ".");
    expect(await readdir(directory)).toContain("program");
  });

  it("reports a source that does not exist, on either side", async () => {
    expect(await run("cp", "missing", "box:x")).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("ENOENT"),
    });
    expect(await run("cp", "box:missing", "x")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("missing"),
    });
    expect(await run("cp", "a", "b")).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("SANDBOX:PATH") });
  });

  it("leaves no partial file when it is interrupted", async () => {
    await run("exec", "box", "--", "truncate", "--size", "900M", "large");
    const target = join(scratch, "target");
    await mkdir(target);
    const child = startCli(["cp", "box:large", target], { env: node.env });
    await expect.poll(() => readdir(target), { interval: 20 }).not.toEqual([]);
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([130, null]);
    expect(await readdir(target)).toEqual([]);
  });

  it("copies a file of this machine whose name contains a colon", () => {
    const made = spawnSync("touch", ["a:b"], { cwd: directory });
    expect(made.status).toBe(0);
    return expect(run("cp", "./a:b", "box:/tmp/")).resolves.toMatchObject({ stderr: "", exitCode: 0 });
  });
});
