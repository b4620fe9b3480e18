import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { CheckpointRequirements } from "@sandpiper/core";
import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import type { GvisorHost } from "./host.ts";
import type { Image } from "./image.ts";

/** What the installed packages are: the programs that run are mapped from their files, also after a restore. */
const PACKAGES = "/var/lib/dpkg/status";

/** A saved memory holds code and file positions of all of these. */
export async function checkpointRequirements(host: GvisorHost, image: Image): Promise<CheckpointRequirements> {
  const [agent, packages, cpu] = await Promise.all([
    readFile(host.agent),
    readFile(PACKAGES).catch(() => Buffer.alloc(0)),
    readFile("/proc/cpuinfo", "utf8"),
  ]);
  return {
    runtime: `runsc ${host.runscVersion}`,
    platform: "systrap",
    architecture: process.arch,
    agentGeneration: String(PROTOCOL_GENERATION),
    agent: digest(agent),
    image: image.mounts.some(({ destination }) => destination === "/usr")
      ? `${basename(image.root)} ${digest(packages)}`
      : basename(image.root),
    cpuFeatures: /^(?:flags|Features)\s*:\s*(.*)$/m.exec(cpu)?.[1]?.split(/\s+/).toSorted().join(" ") ?? "",
  };
}

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}
