import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { uptime } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import { findGuard } from "./find-agent.ts";
import type { KillList, KillTarget } from "./kill-list.ts";
import { currentOwner, isOwnerAlive, type ProcessOwner } from "./process-owner.ts";

const ENDED = ".ended";
const NODE = ".node";
const GUARD = ".guard";

/** The format of leases that this node writes; a guard of another version may not read it. */
const FORMAT = "2";

const START_ATTEMPTS = 5;
const LOOK_MS = 5;

export interface GuardOptions {
  /**
   * The guard's own directory, best in memory, so that a full or slow disk ends no lease. One node at a time uses it.
   */
  readonly directory: string;
  /** How much later than its deadline another node may start a sandbox. */
  readonly graceMs: number;
  readonly clock?: Clock;
}

/**
 * Kills instances whose lease has expired, even while this program is suspended or dead: its instances keep running,
 * and another node may have restored the same sandbox. A separate process does the work.
 */
export class Guard {
  /** What to kill for each sandbox. */
  readonly killList: KillList = {
    set: (id, targets) => this.#retarget(id, () => this.#targets.set(id, targets)),
    delete: (id) => this.#retarget(id, () => this.#targets.delete(id)),
  };
  readonly #directory: string;
  readonly #graceMs: number;
  readonly #clock: Clock;
  readonly #targets = new Map<SandboxId, readonly KillTarget[]>();
  /** By the clock of the guard process. */
  readonly #deadlines = new Map<SandboxId, number>();
  #hasRecalled = false;

  constructor({ directory, graceMs, clock = systemClock }: GuardOptions) {
    this.#directory = directory;
    this.#graceMs = graceMs;
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
      if (!this.#hasRecalled) this.#recall();
      this.#hasRecalled = true;
      await this.#endOther();
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
    // Synchronous, so that renewals stay in order.
    this.#writeLease(id, Math.max(0, Math.floor(boottimeMs + leftMs)));
  }

  /**
   * For an instance that has ended or no longer needs a lease. An id that `ended` lists must be released before it
   * starts again.
   */
  remove(id: SandboxId): void {
    this.#deadlines.delete(id);
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

  /** The guard must know new targets at once, not with the next renewal. */
  #retarget(id: SandboxId, change: () => void): void {
    change();
    const deadlineMs = this.#deadlines.get(id);
    if (deadlineMs !== undefined) this.#writeLease(id, deadlineMs);
  }

  async #isRunning(): Promise<boolean> {
    const owner = ownerFromText(await this.#guardText());
    return owner !== undefined && (await isOwnerAlive(owner));
  }

  /** Ends a guard of another version; the next one continues with its leases. */
  async #endOther(): Promise<void> {
    const text = await this.#guardText();
    const owner = ownerFromText(text);
    if (owner === undefined || text.trim().split(" ")[3] === FORMAT) return;
    while (await isOwnerAlive(owner)) {
      process.kill(owner.pid, "SIGKILL");
      await sleep(LOOK_MS);
    }
  }

  #guardText(): Promise<string> {
    return readFile(join(this.#directory, GUARD), "utf8").catch(() => "");
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

  /** The targets that an earlier process of this node wrote: its instances may still run. */
  #recall(): void {
    for (const id of readdirSync(this.#directory).filter((name) => isSandboxId(name))) {
      const { targets } = parseLease(readFileSync(join(this.#directory, id), "utf8"));
      if (!this.#targets.has(id as SandboxId)) this.#targets.set(id as SandboxId, targets);
    }
  }

  #writeLease(id: SandboxId, deadlineMs: number): void {
    this.#deadlines.set(id, deadlineMs);
    const lease = { deadlineMs, graceMs: this.#graceMs, targets: this.#targets.get(id) ?? [] };
    this.#write(id, JSON.stringify(lease));
  }

  #write(name: string, text: string): void {
    const draft = join(this.#directory, `.${name}~`);
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, join(this.#directory, name));
  }
}

function textOfOwner({ pid, startTicks, bootId }: ProcessOwner): string {
  return `${pid} ${startTicks} ${bootId}\n`;
}

function ownerFromText(text: string): ProcessOwner | undefined {
  const [pid, startTicks, bootId] = text.trim().split(" ");
  if (pid === undefined || startTicks === undefined || bootId === undefined) return undefined;
  return { pid: Number(pid), startTicks: Number(startTicks), bootId };
}

/** Without targets if another version wrote it. */
function parseLease(text: string): { readonly targets: readonly KillTarget[] } {
  try {
    const { targets = [] } = JSON.parse(text);
    return { targets };
  } catch {
    return { targets: [] };
  }
}
