import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Guest } from "../guest/guest.ts";
import { Progress } from "../output/progress.ts";
import { download } from "./download.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "sandpiper-download-"));
  await mkdir(join(directory, "target"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** A sandbox whose code has taken over the agent: it lists any path, and every file is endless. */
function hostileSandbox(paths: readonly string[], { diskMib = 1 } = {}): Guest {
  const entry = (path: string, kind: string) => ({ path, kind, mode: 0o777, sizeBytes: 1 });
  const files = {
    stat: async () => entry("/out", "directory"),
    async *list() {
      for (const path of paths) yield entry(path, "file");
    },
    async *read() {
      for (;;) yield new Uint8Array(64 * 1024);
    },
  };
  return { diskMib, files } as unknown as Guest;
}

const downloadFrom = (sandbox: Guest) =>
  download(
    sandbox,
    { from: "/out", to: join(directory, "target"), shown: "--download /out:target" },
    { notice: () => {}, progress: new Progress("downloading", { isShown: false }) },
  );

describe("a download from a hostile sandbox", () => {
  it.each(["../escaped", "/etc/escaped", "a/../../escaped", "..", ".", "", "a//b", "a\0b"])(
    "refuses the path %j and writes nothing",
    async (path) => {
      await expect(downloadFrom(hostileSandbox([path]))).rejects.toMatchObject({ reason: "untrusted_path" });
      expect(await readdir(directory, { recursive: true })).toEqual(["target"]);
    },
  );

  it("stops an endless file at the size of the sandbox's disk and deletes the partial file", async () => {
    await expect(downloadFrom(hostileSandbox(["endless"]))).rejects.toMatchObject({ reason: "download_too_large" });
    expect(await readdir(directory, { recursive: true })).toEqual(["target"]);
  });
});
