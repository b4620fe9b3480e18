import { createHash } from "node:crypto";
import type { SandboxId } from "@sandpiper/protocol";

/** A mapping of the OCI runtime specification, for user ids and group ids alike. */
export interface IdMapping {
  readonly containerID: number;
  readonly hostID: number;
  readonly size: number;
}

/** Ids that no distribution assigns: below 2³¹, and above those that systemd gives to containers. */
const FIRST_ROOT = 0x7000_0000;
const ROOTS = 0x0ffe_0000;
const OTHERS = 0x7fff_0000;
const IDS_OF_IMAGE = 0x1_0000;

/**
 * The ids that gVisor's processes, and the files of the image, have on the host. Root is an id of the sandbox, under
 * which its processes run. All sandboxes share the other ids, which only files have. No id of the host is mapped, so
 * that a capability inside applies to no file of the host.
 */
export function idMappings(id: SandboxId): readonly IdMapping[] {
  const root = FIRST_ROOT + (createHash("sha256").update(id).digest().readUInt32BE(0) % ROOTS);
  return [
    { containerID: 0, hostID: root, size: 1 },
    { containerID: 1, hostID: OTHERS + 1, size: IDS_OF_IMAGE - 1 },
  ];
}

/** As the kernel expects them in `uid_map`. */
export function idMapText(mappings: readonly IdMapping[]): string {
  return mappings.map(({ containerID, hostID, size }) => `${containerID} ${hostID} ${size}\n`).join("");
}
