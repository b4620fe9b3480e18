import type { Workspace } from "./workspace.ts";

/** How long instances are left alone before their idle memory is read. */
export const SETTLE_MS = 2000;

/**
 * Instances of one kind differ by up to a third in how long an exec takes, each for as long as it lives; rounds take
 * turns over so many of them.
 */
export const EXEC_INSTANCES = 4;

/**
 * One way of running code that a user could pick. It offers the operations it has; each takes its own time, so that
 * preparation and removal stay outside of the clock. Times are milliseconds.
 */
export interface Subject extends AsyncDisposable {
  /** From nothing until it answers; removed again. */
  createToReady?(): Promise<number>;
  /** From nothing until the first byte of a program's output; removed again. */
  createToFirstOutput?(): Promise<number>;
  /** Runs a static `true` in an instance that stays, `count` times one after another, each after a rest. */
  execTrue?(count: number, restMs: number): Promise<number[]>;
  /** Runs the static /bin/say in an instance that stays, until its output is in the host program; `count` times. */
  execSay?(count: number): Promise<number[]>;
  /** Milliseconds for `count` static `true` in one instance, all at once and one after another. */
  execMany?(count: number): Promise<{ readonly atOnceMs: number; readonly inARowMs: number }>;
  /** The shortest question and answer, `count` times one after another. */
  ping?(count: number): Promise<number[]>;
  /** Copies a file of the host into an instance that stays. */
  writeFile?(hostPath: string): Promise<number>;
  /** Copies the file written last back to the host. */
  readFile?(hostPath: string): Promise<number>;
  /** As `writeFile`, from the memory of the host program. */
  writeBytes?(bytes: Uint8Array): Promise<number>;
  /** As `readFile`, piece by piece into the memory of the host program; `check` gets each while the clock runs. */
  readBytes?(check: (bytes: Uint8Array, offset: number) => void): Promise<number>;
  /** Megabytes (PSS) of each of `count` idle instances that live at once; removed again. */
  idleMemory?(count: number, signal: AbortSignal): Promise<number[]>;
}

/** Gives the first and puts it last. */
export function nextInTurn<T>(instances: T[]): T {
  const next = instances.shift();
  if (next === undefined) throw new RangeError("no instances to take turns");
  instances.push(next);
  return next;
}

export interface SubjectDefinition {
  readonly name: string;
  /** What stands behind the name, for the report. */
  readonly title: string;
  open(workspace: Workspace): Promise<Subject>;
}
