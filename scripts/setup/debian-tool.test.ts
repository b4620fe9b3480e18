import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type DebianTool, libraryPath, provideTool } from "./debian-tool.mjs";
import { SetupError } from "./setup-error.mjs";

/** Runs only where it finds its library, as a dynamic program does. */
const PROGRAM =
  '#!/bin/sh\n[ -e "$LD_LIBRARY_PATH/libengine.so" ] || { echo "libengine.so: cannot open" >&2; exit 127; }\n';

let directory: string;
let root: string;
let tool: DebianTool;
beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  directory = mkdtempSync(join(tmpdir(), "sandpiper-tool-"));
  root = join(directory, "cache/engine");
  tool = {
    name: randomUUID(),
    title: "Engine",
    purpose: "to test.",
    packages: () => ["engine"],
    programs: ["usr/sbin/engine", "usr/sbin/runc"],
    install: { debian: "engine", fedora: "engine", arch: "engine", suse: "engine" },
    seconds: 1,
  };
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(directory, { recursive: true });
});

describe("an unpacked tool", () => {
  it("is kept when all its programs run", async () => {
    const fetch = vi.fn(fetchWhole);
    writeTree(root);
    await provideTool(tool, { root, fetch });
    expect(fetch).not.toHaveBeenCalled();
  });

  it.each([
    ["that lacks a program", "usr/sbin/runc"],
    ["whose program lacks a library", "usr/lib"],
    ["that lacks everything", "usr"],
  ])("%s is replaced by a new download", async (_, missing) => {
    const fetch = vi.fn(fetchWhole);
    writeTree(root);
    rmSync(join(root, missing), { recursive: true });
    await provideTool(tool, { root, fetch });
    expect(fetch).toHaveBeenCalledTimes(1);
    expect(existsSync(join(root, missing))).toBe(true);
  });

  it("is not kept when the new download does not run either, and the error says why and what to do instead", async () => {
    const fetch = vi.fn(async (_: DebianTool, use: (unpacked: string) => Promise<void>) => {
      const unpacked = join(directory, "unpacked");
      writeTree(unpacked);
      rmSync(join(unpacked, "usr/lib"), { recursive: true });
      await use(unpacked);
    });
    const error = await provideTool(tool, { root, fetch }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SetupError);
    expect((error as Error).message).toMatch(/does not run here: .*usr\/sbin\/engine --version.*cannot open/);
    expect((error as Error).message.split("\n").at(-1)).toMatch(/engine$/);
    expect(fetch).toHaveBeenCalledTimes(1);
    expect(existsSync(root)).toBe(false);
  });
});

async function fetchWhole(_: DebianTool, use: (unpacked: string) => Promise<void>) {
  const unpacked = join(directory, "unpacked");
  writeTree(unpacked);
  await use(unpacked);
}

function writeTree(at: string) {
  const files = [...tool.programs.map((program) => join(at, program)), join(libraryPath(at), "libengine.so")];
  for (const path of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, PROGRAM, { mode: 0o755 });
  }
}
