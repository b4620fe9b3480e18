export interface PrivilegeOptions {
  readonly qemuVersion: string;
  /** Whom QEMU runs as once it has opened everything. */
  readonly uid: number;
}

/**
 * Privileges are given up by QEMU itself, after it has opened its files, which a filter must let it do. The directory it starts in is
 * all of the filesystem that it sees afterwards.
 */
export function privilegeArguments({ qemuVersion, uid }: PrivilegeOptions): string[] {
  const filter = ["-sandbox", "on,obsolete=deny,spawn=deny,resourcecontrol=deny"];
  const user = `${uid}:${uid}`;
  if (isAtLeast(qemuVersion, 9, 1)) return [...filter, "-run-with", `user=${user},chroot=.`];
  const chroot = isAtLeast(qemuVersion, 8, 1) ? ["-run-with", "chroot=."] : ["-chroot", "."];
  return [...filter, "-runas", user, ...chroot];
}

function isAtLeast(version: string, major: number, minor: number): boolean {
  const [foundMajor = 0, foundMinor = 0] = version.split(".").map(Number);
  return foundMajor > major || (foundMajor === major && foundMinor >= minor);
}
