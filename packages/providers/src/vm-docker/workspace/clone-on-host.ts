import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { chown, lstat, mkdir, readdir } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "@sandpiper/core";
import { type CloneCommand, cloneCommand } from "../../host/git-clone.ts";

const KEPT_CHARACTERS = 4096;
const SIZE_INTERVAL_MS = 500;
/** Above the users of a normal host and of virtual machines. */
const FIRST_UID = 0x7000_0000;
const UIDS = 0xff_ffff;
const PROXY_VARIABLES = ["https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"];

export interface Repository {
  readonly git: string;
  readonly ref?: string | undefined;
}

export interface GitPolicy {
  /** Hosts, with a port unless it is the usual one, that may be private and use http. All others must be public. */
  readonly gitHosts: readonly string[];
  readonly isPublicAddress: (address: string) => boolean;
}

export interface CloneOnHostOptions extends GitPolicy {
  /** An empty directory. */
  readonly directory: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Rejects a repository that this host must not fetch; returns the arguments that bind git to the checked addresses. */
export async function requireGitHost(repository: Repository, policy: GitPolicy): Promise<readonly string[]> {
  const { shownUrl } = cloneCommand(repository, "/");
  const { protocol, hostname, host } = new URL(shownUrl);
  if (policy.gitHosts.includes(host) && (protocol === "https:" || protocol === "http:")) return [];
  if (protocol !== "https:") {
    throw notAllowed(shownUrl, "it is cloned on this host, which only uses https", "use an https:// URL");
  }
  const bare = hostname.replace(/^\[|\]$/g, "");
  const found = await lookup(bare, { all: true }).catch(() => []);
  const addresses = found.map(({ address }) => address).filter(policy.isPublicAddress);
  if (addresses.length === 0) {
    const hint = "check the host's name; the operator allows private hosts with vmDocker.gitHosts";
    throw notAllowed(shownUrl, `${hostname} has no public address`, hint);
  }
  if (isIP(bare) !== 0) return [];
  const port = new URL(shownUrl).port || "443";
  // Otherwise the name could resolve to a private address when git connects.
  return ["-c", `http.curloptResolve=${hostname}:${port}:${addresses.map(bracketed).join(",")}`];
}

/**
 * Clones as a user of its own, who has neither this user's keys nor their git configuration. Submodules are not fetched, and
 * no program of the repository runs.
 */
export async function cloneOnHost(repository: Repository, options: CloneOnHostOptions): Promise<string> {
  const { directory, signal, timeoutMs } = options;
  const target = join(directory, "clone");
  const command = cloneCommand(repository, target);
  const pinned = await requireGitHost(repository, options);
  const uid = process.getuid?.() === 0 ? FIRST_UID + randomInt(UIDS) : undefined;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  if (uid !== undefined) await chown(directory, uid, uid);
  const limit = AbortSignal.timeout(timeoutMs);
  const ended = new AbortController();
  const both = AbortSignal.any([signal, limit, ended.signal]);
  const child = start([...asUser(uid), ...gitArguments(command, pinned)], environment(command, directory));
  const output = collectOutput(child);
  const kill = () => killGroup(child);
  both.addEventListener("abort", kill, { once: true });
  const exit = once(child, "close") as Promise<[number | null]>;
  try {
    const [code] = await Promise.race([exit, untilLarger(directory, options.maxBytes, both)]);
    if (code !== 0) throw failed(command, code, output().replaceAll(target, "the workspace"));
    return target;
  } catch (thrown) {
    signal.throwIfAborted();
    if (limit.aborted) throw tookTooLong(command, timeoutMs);
    if (thrown instanceof SandboxError) throw thrown;
    throw failed(command, null, String(thrown));
  } finally {
    both.removeEventListener("abort", kill);
    kill();
    ended.abort();
    // Nothing may write to the directory any more.
    await exit.catch(() => {});
  }
}

function gitArguments({ argv: [git = "git", clone = "clone", ...rest] }: CloneCommand, pinned: readonly string[]) {
  // A redirect could lead to another host.
  const settings = ["-c", "http.followRedirects=false", "-c", "core.hooksPath=/dev/null", ...pinned];
  return [git, ...settings, clone, "--quiet", "--no-recurse-submodules", "--template=", ...rest];
}

/** The program also ends with this one. */
function asUser(uid: number | undefined): readonly string[] {
  if (uid === undefined) return [];
  const user = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--no-new-privs", "--inh-caps=-all"];
  return ["setpriv", ...user, "--pdeathsig=KILL", "--"];
}

function environment({ env }: CloneCommand, home: string): NodeJS.ProcessEnv {
  const proxies = PROXY_VARIABLES.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []));
  return {
    ...Object.fromEntries(proxies),
    ...env,
    PATH: process.env["PATH"],
    HOME: home,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ALLOW_PROTOCOL: "https:http",
    GIT_ASKPASS: "/bin/false",
    GIT_COMMITTER_NAME: "sandpiper",
    GIT_COMMITTER_EMAIL: "sandpiper@localhost",
    LC_ALL: "C",
  };
}

/** In its own process group, because git starts further programs. */
function start([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  return spawn(program, args, { cwd: "/", env, detached: true, stdio: ["ignore", "ignore", "pipe"] });
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of its programs have ended.
  }
}

function collectOutput(child: ChildProcess): () => string {
  let output = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    output = `${output}${text}`.slice(-KEPT_CHARACTERS);
  });
  return () => output;
}

async function untilLarger(directory: string, maxBytes: number, signal: AbortSignal): Promise<never> {
  for (;;) {
    await sleep(SIZE_INTERVAL_MS, undefined, { signal });
    if ((await sizeOf(directory)) > maxBytes) throw tooLarge(maxBytes);
  }
}

/** Files may come and go while git works. */
async function sizeOf(path: string): Promise<number> {
  const info = await lstat(path).catch(() => undefined);
  if (info?.isDirectory() !== true) return info?.size ?? 0;
  let sum = 0;
  for (const name of await readdir(path).catch(() => [])) sum += await sizeOf(join(path, name));
  return sum;
}

function bracketed(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

function notAllowed(shownUrl: string, why: string, hint: string): SandboxError {
  return new SandboxError("git_host_not_allowed", { message: `cannot clone ${shownUrl}: ${why}`, hint });
}

function failed({ shownUrl, redact }: CloneCommand, code: number | null, output: string): SandboxError {
  const isMissing = code === 127 || /ENOENT/.test(output);
  const ended = code === null ? "git was killed" : `git exited with code ${code}`;
  const why = isMissing ? "this host has no git" : `${ended}: ${redact(output.trim())}`;
  return new SandboxError("workspace_clone_failed", {
    message: `could not clone ${shownUrl} into the workspace: ${why}`,
    hint: isMissing
      ? "install git and util-linux (setpriv) on the node's machine"
      : "check the URL, the ref (a branch or a tag), and that this host reaches the server; redirects are not followed",
    details: { exitCode: code },
  });
}

function tookTooLong({ shownUrl }: CloneCommand, timeoutMs: number): SandboxError {
  return new SandboxError("workspace_clone_timeout", {
    message: `could not clone ${shownUrl} into the workspace within ${timeoutMs} ms`,
    hint: "check that this host reaches the server; copy a large repository into the sandbox instead",
  });
}

export function tooLarge(maxBytes: number): SandboxError {
  const mib = Math.floor(maxBytes / 2 ** 20);
  return new SandboxError("workspace_too_large", {
    message: `the workspace is larger than ${mib} MiB`,
    hint: "use a smaller directory or repository; the operator can raise vmDocker.workspaceMib",
    details: { maxMib: mib },
  });
}
