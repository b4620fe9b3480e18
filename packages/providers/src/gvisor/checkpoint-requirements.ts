import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { CheckpointRequirements } from "@sandpiper/core";
import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import { FileDigests } from "../host/file-digests.ts";
import type { GvisorHost } from "./host.ts";
import type { Image } from "./image.ts";

/** What the installed packages are: the programs that run are mapped from their files, also after a restore. */
const PACKAGES = "/var/lib/dpkg/status";

const digests = new FileDigests();
let cpuFeatures: string | undefined;

/** A saved memory holds code and file positions of all of these. */
export async function checkpointRequirements(host: GvisorHost, image: Image): Promise<CheckpointRequirements> {
  const [agent, packages] = await Promise.all([digests.of(host.agent), digests.of(PACKAGES)]);
  cpuFeatures ??= findCpuFeatures();
  return {
    runtime: `runsc ${host.runscVersion}`,
    platform: "systrap",
    architecture: process.arch,
    agentGeneration: String(PROTOCOL_GENERATION),
    agent,
    image: image.mounts.some(({ destination }) => destination === "/usr")
      ? `${basename(image.root)} ${packages}`
      : basename(image.root),
    cpuFeatures,
  };
}

function findCpuFeatures(): string {
  const text = readFileSync("/proc/cpuinfo", "utf8");
  return /^(?:flags|Features)\s*:\s*(.*)$/m.exec(text)?.[1]?.split(/\s+/).toSorted().join(" ") ?? "";
}
