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
  /**
   * The guard's own directory, best in memory, so that a full or slow disk ends no lease. One node at a time uses it.
   */
  readonly directory: string;
  /** Below the root of the cgroups; its last part begins with `sandpiper-<id>`. */
  readonly cgroupPath: (id: SandboxId) => string;
  readonly clock?: Clock;
}

/**
 * Kills instances whose lease has expired, even while this program is suspended or dead: its instances keep running,
 * and another node may have restored the same sandbox. A separate process does the work.
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

  /** Ensures that the process runs. Cheap if it does, so every renewal can call it. */
  async start(): Promise<void> {
    const owner = textOfOwner(await currentOwner());
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      // A guard that is about to exit removes its directory.
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      // Must come first: a guard without leases stays only while it finds a node.
      this.#write(NODE, owner);
      if (await this.#isRunning()) return;
      await this.#spawn();
    }
    throw new SandboxError("guard_missing", {
      message: `the lease guard does not keep running in ${this.#directory}`,
      hint: `run \`${findGuard()} ${this.#directory}\` to see why`,
    });
  }

  /** The guard kills the instance at that time unless a later deadline is set before. */
  set(id: SandboxId, deadlineMs: number): void {
    // In this order: if the program is suspended in between, the deadline is too early, never too late.
    const boottimeMs = uptime() * 1000;
    const leftMs = deadlineMs - this.#clock.monotonicMs();
    const deadline = Math.max(0, Math.floor(boottimeMs + leftMs));
    // Synchronous, so that renewals stay in order.
    this.#write(id, [deadline, ...this.#cgroups(id), ""].join("\n"));
  }

  /**
   * For an instance that has ended or no longer needs a lease. An id that `ended` lists must be released before it
   * starts again.
   */
  remove(id: SandboxId): void {
    for (const name of [id, `${id}${ENDED}`]) rmSync(join(this.#directory, name), { force: true });
  }

  /** The sandboxes whose instances were killed because their lease expired, until they are released. */
  async ended(): Promise<SandboxId[]> {
    const names = existsSync(this.#directory) ? await readdir(this.#directory) : [];
    const ids = names.filter((name) => name.endsWith(ENDED)).map((name) => name.slice(0, -ENDED.length));
    return ids.filter((id) => isSandboxId(id));
  }

  /** The guard exits if it watches no lease; otherwise it continues without this program. */
  close(): void {
    const names = existsSync(this.#directory) ? readdirSync(this.#directory) : [];
    if (!names.some((name) => isSandboxId(name))) rmSync(this.#directory, { recursive: true, force: true });
  }

  async #isRunning(): Promise<boolean> {
    const owner = ownerFromText(await readFile(join(this.#directory, GUARD), "utf8").catch(() => ""));
    return owner !== undefined && (await isOwnerAlive(owner));
  }

  /** Resolves once the guard watches, or has exited. */
  async #spawn(): Promise<void> {
    // In its own session, so that signals to this program and its terminal do not reach it.
    const child = spawn(findGuard(), [this.#directory], { cwd: "/", env: {}, stdio: "ignore", detached: true });
    child.unref();
    let hasEnded = false;
    once(child, "exit").then(
      () => (hasEnded = true),
      () => (hasEnded = true),
    );
    while (!hasEnded && !(await this.#isRunning())) await sleep(LOOK_MS);
  }

  /** In every hierarchy, even if the cgroup does not exist yet. */
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
  // In v2 the root is itself a hierarchy, and the directories below it belong to it.
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
