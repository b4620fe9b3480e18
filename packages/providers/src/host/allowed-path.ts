import { realpath, stat } from "node:fs/promises";
import { posix } from "node:path";
import { SandboxError } from "@sandpiper/core";

/** Never mounted; no setting can allow them. */
const NEVER = ["/proc", "/sys", "/dev"];
/**
 * Passwords, sockets of daemons, files of other containers. An allowed path that contains one of these, such as /, does not
 * allow it; an allowed path below one of these does.
 */
const UNLESS_NAMED = ["/etc", "/run", "/var/run", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers"];

/** The directories of the engine's machine that sandboxes may mount. */
export interface PathPolicy {
  /** Including their subdirectories. */
  readonly allowedPaths: readonly string[];
  /** Never mounted either: the engine's socket, Sandpiper's own state. */
  readonly ownPaths: readonly string[];
  /** The engine is on another machine, whose symlinks are unknown: paths are compared as written. */
  readonly isRemote: boolean;
}

/** Returns the real path of an allowed directory. The engine gets that path, so that a link cannot change in between. */
export async function requireAllowedPath(path: string, policy: PathPolicy): Promise<string> {
  const follow = policy.isRemote ? async (text: string) => text : realPath;
  const written = withoutTrailingSlash(path);
  const roots = await Promise.all(policy.allowedPaths.map(async (root) => (await follow(root)) ?? root));
  const real = isPlain(written) ? await follow(written) : undefined;
  if (real === undefined) {
    // Only errors about allowed paths may reveal whether a path exists.
    if (isPlain(written) && policy.allowedPaths.some((root) => isWithin(written, root))) throw missing(path);
    throw notAllowed(path, policy);
  }
  const root = roots.map(withoutTrailingSlash).find((candidate) => isWithin(real, candidate));
  if (root === undefined) throw notAllowed(path, policy);
  const own = await Promise.all(policy.ownPaths.map(async (text) => (await follow(text)) ?? text));
  const forbidden = [...NEVER, ...own, ...UNLESS_NAMED.filter((each) => root === each || !isWithin(root, each))];
  const conflict = forbidden.find((candidate) => isWithin(real, candidate) || isWithin(candidate, real));
  if (conflict !== undefined) throw forbiddenPath(path, real);
  if (!policy.isRemote && !(await stat(real)).isDirectory()) throw notDirectory(path);
  return real;
}

async function realPath(path: string): Promise<string | undefined> {
  return await realpath(path).catch(() => undefined);
}

/** Has no `.`, `..` or empty part. */
function isPlain(path: string): boolean {
  return path === posix.normalize(path);
}

function withoutTrailingSlash(path: string): string {
  return path.replace(/(?<=.)\/+$/, "");
}

export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

function notAllowed(path: string, { allowedPaths, isRemote }: PathPolicy): SandboxError {
  const allowed = allowedPaths.length === 0 ? "no path is allowed" : `allowed: ${allowedPaths.join(", ")}`;
  const where = isRemote ? " (paths of the engine's machine, compared as written)" : "";
  return new SandboxError("path_not_allowed", {
    message: `a sandbox may not mount ${path}; ${allowed}${where}`,
    hint: "use an absolute path without . and .. below an allowed one, or extend the allowedPaths option of the docker provider",
    details: { path, allowedPaths },
  });
}

function forbiddenPath(path: string, real: string): SandboxError {
  return new SandboxError("path_not_allowed", {
    message: `a sandbox may not mount ${path}${real === path ? "" : ` (${real})`}: it contains files of the system, of the container engine or of Sandpiper`,
    hint: "use a subdirectory with only the files that the sandbox needs",
    details: { path },
  });
}

function missing(path: string): SandboxError {
  return new SandboxError("no_such_path", {
    message: `a sandbox cannot mount ${path}: it does not exist`,
    hint: "create the directory first; if Sandpiper runs in a container, mount it there at the same path",
    details: { path },
  });
}

function notDirectory(path: string): SandboxError {
  return new SandboxError("path_not_a_directory", {
    message: `a sandbox cannot mount ${path}: it is not a directory`,
    details: { path },
  });
}
