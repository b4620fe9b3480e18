import { SandboxError } from "@sandpiper/core";

/** Of an archive that is no root filesystem, and no image of one. */
export function archiveError(path: string, why: string, cause?: unknown): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "rootfs_not_an_archive",
    message: `the archive ${JSON.stringify(path)} cannot be used as a root filesystem: ${why}`,
    hint: "give what `docker save` writes of one image, `docker export` of a container, or an OCI layout as a tar archive",
    cause,
  });
}
