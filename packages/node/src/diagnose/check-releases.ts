import { existsSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { NeededRelease } from "../checkpoints/release-keeper.ts";
import { loadNodeConfig } from "../config/load-node-config.ts";
import type { Check } from "./check.ts";
import { openReleases } from "./open-releases.ts";

/** Lists the releases of gVisor that the node keeps, and what needs them; no check before the first sandbox of a node. */
export async function checkReleases(env: NodeJS.ProcessEnv = process.env): Promise<readonly Check[]> {
  const name = "gVisor releases";
  try {
    const config = await loadNodeConfig({ argv: [], env });
    if (!existsSync(join(config.home, "node/gvisor"))) return [];
    const releases = await openReleases(config).list();
    return [{ name, status: "ok", detail: releases.map(describeRelease).join("; ") }];
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return [{ name, status: "warning", detail: message, ...(hint === undefined ? {} : { hint }) }];
  }
}

function describeRelease({ program, version, isCurrent, instances, sandboxes }: NeededRelease): string {
  const uses = [
    ...(isCurrent ? ["new sandboxes"] : []),
    ...(instances.length > 0 ? [`${instances.length} running`] : []),
    ...(sandboxes.length > 0 ? [`${sandboxes.length} saved`] : []),
  ];
  return `${program} ${version}: ${uses.join(", ") || "not needed"}`;
}
