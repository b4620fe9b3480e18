/** The gVisor release that Sandpiper is built and tested with; set-up builds the same one. */
export const runscRelease = Object.freeze({
  version: "20260905.0",
  moduleVersion: "v0.0.0-20260905035102-160fafc42237",
});

/** The version in the output of `runsc --version`, like "20260905.0"; undefined for another program. */
export function parseRunscVersion(versionOutput: string): string | undefined {
  return /^runsc version (?:release-)?(\S+)/.exec(versionOutput)?.[1];
}

/** Whether a version is a release number; builds from source may print anything. */
export function isRelease(version: string): boolean {
  return /^\d{8}(\.\d+)?$/.test(version);
}

/** Whether a release is the pinned one or a later one. */
export function isRecentRunsc(version: string): boolean {
  if (!isRelease(version)) return false;
  const [date = 0, patch = 0] = version.split(".").map(Number);
  const [pinnedDate = 0, pinnedPatch = 0] = runscRelease.version.split(".").map(Number);
  return date > pinnedDate || (date === pinnedDate && patch >= pinnedPatch);
}
