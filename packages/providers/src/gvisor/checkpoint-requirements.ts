import { basename } from "node:path";
import type { CheckpointRequirements } from "@sandpiper/core";
import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import { cpuFeatures } from "../host/cpu-features.ts";
import { FileDigests } from "../host/file-digests.ts";
import type { GvisorHost } from "./host.ts";
import type { Image } from "./image.ts";

/** Lists the installed packages. Running programs are mapped from the files of these, also after a restore. */
const PACKAGES = "/var/lib/dpkg/status";

const digests = new FileDigests();

/** Saved memory holds code and file positions of all of these. */
export async function checkpointRequirements(host: GvisorHost, image: Image): Promise<CheckpointRequirements> {
  const [agent, packages] = await Promise.all([digests.of(host.agent), digests.of(PACKAGES)]);
  return {
    runtime: `runsc ${host.runscVersion}`,
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
