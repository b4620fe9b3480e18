import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { uptime } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import { findGuard } from "./find-agent.ts";
import { currentOwner, isOwnerAlive, type ProcessOwner } from "./process-owner.ts";

const ENDED = ".ended";
const NODE = ".node";
const GUARD = ".guard";

const CGROUP_ROOT = "/sys/fs/cgroup";

const START_ATTEMPTS = 5;
const LOOK_MS = 5;

export interface GuardOptions {
  /** Its own, best in memory: a full or slow disk then ends no lease. One node at a time uses it. */
  readonly directory: string;
  /** Below the root of the cgroups, as the provider has it: its last part begins with `sandpiper-<id>`. */
  readonly cgroupPath: (id: SandboxId) => string;
  readonly clock?: Clock;
}

/**
 * Ends instances whose lease has run out, also while this program is stopped or after it was killed: instances go on without
 * it, and by then another node may have brought the same sandbox to life. A process of its own does the work.
 */
export class Guard {
  readonly #directory: string;
  readonly #cgroupPath: (id: SandboxId) => string;
  readonly #clock: Clock;
  #hierarchies: readonly string[] | undefined;

  constructor({ directory, cgroupPath, clock = systemClock }: GuardOptions) {
    this.#directory = directory;
    this.#cgroupPath = cgroupPath;
    this.#clock = clock;
  }

  /** Makes sure that the process is there. Cheap when it is, so that it can be called with every renewal. */
  async start(): Promise<void> {
    const owner = textOfOwner(await currentOwner());
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      // One that is just ending takes its directory with it.
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      // Before anything else: a process without leases stays only while it finds a node.
      this.#write(NODE, owner);
      if (await this.#isRunning()) return;
      await this.#spawn();
    }
    throw new SandboxError("unavailable", {
      reason: "guard_missing",
      message: `the guard of leases does not stay in ${this.#directory}`,
      hint: `run \`${findGuard()} ${this.#directory}\`, which says why`,
    });
  }

  /** Everything in the instance ends at that moment of the clock unless a later one is set before. */
  set(id: SandboxId, deadlineMs: number): void {
    // In this order: if the program is stopped between the two, the deadline comes out too early, never too late.
    const boottimeMs = uptime() * 1000;
    const leftMs = deadlineMs - this.#clock.monotonicMs();
    const deadline = Math.max(0, Math.floor(boottimeMs + leftMs));
    // Not waiting keeps renewals in order.
    this.#write(id, [deadline, ...this.#cgroups(id), ""].join("\n"));
  }

  /** For an instance that has ended or may go on without a lease. One that `ended` names must not be started again before. */
  remove(id: SandboxId): void {
    for (const name of [id, `${id}${ENDED}`]) rmSync(join(this.#directory, name), { force: true });
  }

  /** Whose instances were ended because their lease had run out, and which nobody has removed yet. */
  async ended(): Promise<SandboxId[]> {
    const names = existsSync(this.#directory) ? await readdir(this.#directory) : [];
    const ids = names.filter((name) => name.endsWith(ENDED)).map((name) => name.slice(0, -ENDED.length));
    return ids.filter((id) => isSandboxId(id));
  }

  /** Nothing of it is left when it watches nothing; otherwise it goes on without this program. */
  close(): void {
    const names = existsSync(this.#directory) ? readdirSync(this.#directory) : [];
    if (!names.some((name) => isSandboxId(name))) rmSync(this.#directory, { recursive: true, force: true });
  }

  async #isRunning(): Promise<boolean> {
    const owner = ownerFromText(await readFile(join(this.#directory, GUARD), "utf8").catch(() => ""));
    return owner !== undefined && (await isOwnerAlive(owner));
  }

  /** Returns once it keeps watch, or has ended. */
  async #spawn(): Promise<void> {
    // In a session of its own: what ends or stops this program and its terminal does not concern it.
    const child = spawn(findGuard(), [this.#directory], { cwd: "/", env: {}, stdio: "ignore", detached: true });
    child.unref();
    let hasEnded = false;
    once(child, "exit").then(
      () => (hasEnded = true),
      () => (hasEnded = true),
    );
    while (!hasEnded && !(await this.#isRunning())) await sleep(LOOK_MS);
  }

  /** In every hierarchy, whether or not it has been made yet. */
  #cgroups(id: SandboxId): string[] {
    this.#hierarchies ??= findHierarchies();
    return this.#hierarchies.map((hierarchy) => join(hierarchy, this.#cgroupPath(id)));
  }

  #write(name: string, text: string): void {
    const draft = join(this.#directory, `.${name}~`);
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, join(this.#directory, name));
  }
}

function findHierarchies(): string[] {
  const candidates = [CGROUP_ROOT, ...readdirSync(CGROUP_ROOT).map((name) => join(CGROUP_ROOT, name))];
  // In version 2 the root itself is one, and what is below it belongs to it.
  const [first, ...others] = candidates.filter((path) => existsSync(join(path, "cgroup.procs")));
  if (first === undefined) return [];
  return first === CGROUP_ROOT ? [first] : [first, ...others];
}

function textOfOwner({ pid, startTicks, bootId }: ProcessOwner): string {
  return `${pid} ${startTicks} ${bootId}\n`;
}

function ownerFromText(text: string): ProcessOwner | undefined {
  const [pid, startTicks, bootId] = text.trim().split(" ");
  if (pid === undefined || startTicks === undefined || bootId === undefined) return undefined;
  return { pid: Number(pid), startTicks: Number(startTicks), bootId };
}
