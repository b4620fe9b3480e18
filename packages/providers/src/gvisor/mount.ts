/**
 * Where the launcher mounts the image, in a mount namespace of the sandbox. Any user can reach it, unlike the image's own
 * directory.
 */
export const IMAGE_MOUNT_POINT = "/run/sandpiper-image";
/** A mount of the OCI runtime specification. */
export interface Mount {
  readonly destination: string;
  readonly type: "bind" | "tmpfs";
  readonly source: string;
  readonly options: readonly string[];
}

/** Always read-only, because it belongs to the host. */
export function bindMount(source: string, destination: string): Mount {
  return { destination, type: "bind", source, options: ["rbind", "ro"] };
}

export function tmpfsMount(destination: string, options: readonly string[]): Mount {
  return { destination, type: "tmpfs", source: "tmpfs", options };
}
