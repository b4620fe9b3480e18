import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { type RootVariant, rootLayer } from "../../host/testing/root-layer.ts";

const run = promisify(execFile);

/** A directory with a small root filesystem, which is unpacked again when its sources change. */
export async function testRoot(variant: RootVariant = "base"): Promise<string> {
  const archive = await rootLayer(variant);
  const directory = join(dirname(archive), basename(archive, ".tar"));
  if (existsSync(directory)) return directory;
  const draft = `${directory}.${randomUUID()}`;
  try {
    await mkdir(draft);
    await run("tar", ["-xf", archive, "-C", draft]);
    await rename(draft, directory).catch(() => {});
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return directory;
}
