import { realpath, stat } from "node:fs/promises";
import { posix } from "node:path";
import { SandboxError } from "@sandpiper/core";

/** The kernel's, and everything: never lent, whatever is allowed. */
const NEVER = ["/proc", "/sys", "/dev"];
/**
 * Passwords, sockets of daemons, the files of every container: a path that contains them, such as /, does not allow
 * them. What is allowed by a path of its own below one of them was meant.
 */
const UNLESS_NAMED = ["/etc", "/run", "/var/run", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers"];

/** Which directories of the engine's machine sandboxes may be lent. */
export interface PathPolicy {
  /** These and what is below them. */
  readonly allowedPaths: readonly string[];
  /** Never lent either: the engine's socket, Sandpiper's own state. */
  readonly ownPaths: readonly string[];
  /** The engine is on another machine, whose links cannot be followed from here: paths are compared as they are written. */
  readonly isRemote: boolean;
}

/** The real path of a directory that may be lent; the engine is given this one, so that no link is followed twice. */
export async function requireAllowedPath(path: string, policy: PathPolicy): Promise<string> {
  const follow = policy.isRemote ? async (text: string) => text : realPath;
  const written = withoutTrailingSlash(path);
  const roots = await Promise.all(policy.allowedPaths.map(async (root) => (await follow(root)) ?? root));
  const real = isPlain(written) ? await follow(written) : undefined;
  if (real === undefined) {
    // Whether something exists is told only of places that are allowed.
    if (isPlain(written) && policy.allowedPaths.some((root) => isWithin(written, root))) throw missing(path);
    throw notAllowed(path, policy);
  }
  const root = roots.map(withoutTrailingSlash).find((candidate) => isWithin(real, candidate));
  if (root === undefined) throw notAllowed(path, policy);
  const own = await Promise.all(policy.ownPaths.map(async (text) => (await follow(text)) ?? text));
  const closed = [...NEVER, ...own, ...UNLESS_NAMED.filter((place) => root === place || !isWithin(root, place))];
  const place = closed.find((candidate) => isWithin(real, candidate) || isWithin(candidate, real));
  if (place !== undefined) throw closedPlace(path, real);
  if (!policy.isRemote && !(await stat(real)).isDirectory()) throw noDirectory(path);
  return real;
}

async function realPath(path: string): Promise<string | undefined> {
  return await realpath(path).catch(() => undefined);
}

/** No `.`, `..` or empty part: what is compared is what is meant. */
function isPlain(path: string): boolean {
  return path === posix.normalize(path);
}

function withoutTrailingSlash(path: string): string {
  return path.replace(/(?<=.)\/+$/, "");
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

function notAllowed(path: string, { allowedPaths, isRemote }: PathPolicy): SandboxError {
  const allowed = allowedPaths.length === 0 ? "none is" : `what is below ${allowedPaths.join(", ")} is`;
  const where = isRemote ? " (paths of the engine's machine, compared as they are written)" : "";
  return new SandboxError("invalid_argument", {
    reason: "path_not_allowed",
    message: `path ${path} cannot be lent to a sandbox: ${allowed} allowed${where}`,
    hint: "name an absolute path without . and .. that is allowed; whoever runs this allows paths with the allowedPaths option of the docker provider",
    details: { path, allowedPaths },
  });
}

function closedPlace(path: string, real: string): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "path_not_allowed",
    message: `path ${path}${real === path ? "" : ` (${real})`} is never lent to a sandbox: it is or has a part of the machine itself, of its container engine or of Sandpiper`,
    hint: "name a directory further down that holds only what the sandbox needs",
    details: { path },
  });
}

function missing(path: string): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "no_such_path",
    message: `path ${path} cannot be lent to a sandbox: it does not exist`,
    hint: "create the directory first; where Sandpiper runs in a container, it must see it at the same path",
    details: { path },
  });
}

function noDirectory(path: string): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "not_a_directory",
    message: `path ${path} cannot be lent to a sandbox: it is no directory`,
    hint: "lend the directory that it is in",
    details: { path },
  });
}
