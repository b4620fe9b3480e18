import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import type { CheckpointRequirements } from "@sandpiper/core";
import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import { cpuFeatures } from "../host/cpu-features.ts";
import type { Image } from "./image.ts";
import type { RuntimeName } from "./runtimes.ts";

/** Lists the installed packages. Running programs are mapped from the files of these, also after a restore. */
const PACKAGES = "/var/lib/dpkg/status";

const digests = new Map<string, { readonly version: string; readonly digest: Promise<string> }>();

/** Saved memory holds code and file positions of all of these. */
export async function checkpointRequirements(
  { runsc, agent }: RuntimeName,
  image: Image,
): Promise<CheckpointRequirements> {
  const packages = await digestOf(PACKAGES);
  return {
    runtime: `runsc ${runsc}`,
    platform: "systrap",
    architecture: process.arch,
    agentGeneration: String(PROTOCOL_GENERATION),
    agent,
    image: image.mounts.some(({ destination }) => destination === "/usr")
      ? `${basename(image.root)} ${packages}`
      : basename(image.root),
    cpuFeatures: cpuFeatures(),
  };
}

/** A short digest, computed again only when the file has changed; empty for a missing file. */
async function digestOf(path: string): Promise<string> {
  const info = await stat(path).catch(() => undefined);
  if (info === undefined) return "";
  const version = `${info.ino} ${info.size} ${info.mtimeMs}`;
  const known = digests.get(path);
  if (known?.version === version) return known.digest;
  const digest = readFile(path).then((bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 16));
  digests.set(path, { version, digest });
  return digest;
}
