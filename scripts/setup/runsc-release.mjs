/** The gVisor release that Sandpiper is built and tested with. */
export const runscRelease = Object.freeze({
  /** What `runsc --version` says. Without "release-", which would make it look for companion binaries of that release. */
  version: "20260905.0",
  moduleVersion: "v0.0.0-20260905035102-160fafc42237",
  /** The module's content hash, as `go version -m` shows it. */
  moduleSum: "h1:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg44=",
});

/**
 * Whether the output of `runsc --version` names the pinned release or a later one.
 * @param {string} versionOutput
 */
export function isRecentRunsc(versionOutput) {
  const found = parseVersion(versionOutput);
  const pinned = parseVersion(`runsc version ${runscRelease.version}`);
  if (found === undefined || pinned === undefined) return false;
  return found.date > pinned.date || (found.date === pinned.date && found.patch >= pinned.patch);
}

/** @param {string} versionOutput */
function parseVersion(versionOutput) {
  const match = /^runsc version (?:release-)?(\d{8})(?:\.(\d+))?(?:\s|$)/.exec(versionOutput);
  return match === null ? undefined : { date: Number(match[1]), patch: Number(match[2] ?? 0) };
}
