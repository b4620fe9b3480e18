import { link } from "node:fs/promises";
import { join } from "node:path";
import type { QemuHost } from "../host.ts";
import { BASE_DISK, DISK, type LaunchedMachine, type LaunchOptions, launchMachine } from "../machine/launch-machine.ts";
import { writeOverlayDisk } from "../machine/overlay-disk.ts";
import type { Template } from "./template.ts";

export interface CloneOptions extends Pick<LaunchOptions, "name" | "directory" | "shape" | "signal"> {
  readonly template: Template;
}

/**
 * Starts a clone of a template in an empty directory. It waits for `loadState`. Memory and disk are copied on write.
 */
export async function launchClone(host: QemuHost, options: CloneOptions): Promise<LaunchedMachine> {
  const { template, shape, directory } = options;
  await Promise.all([
    writeOverlayDisk(join(directory, DISK), { sizeBytes: shape.diskMib * 2 ** 20 }),
    // A link, so that it stays when the template is removed.
    link(template.disk, join(directory, BASE_DISK)),
  ]);
  return await launchMachine(host, {
    ...options,
    memory: { file: template.memory, isShared: false },
    hasBaseDisk: true,
    stateFile: template.state,
    ignoresShared: true,
  });
}
