import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

/** A directory for one test file, deleted afterwards. */
export function useScratchDirectory(): { readonly path: string } {
  const directory = { path: "" };
  beforeAll(async () => {
    directory.path = await mkdtemp(join(tmpdir(), "sandpiper-e2e-"));
  });
  afterAll(() => rm(directory.path, { recursive: true, force: true }));
  return directory;
}
