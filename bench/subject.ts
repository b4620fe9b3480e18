import type { Workspace } from "./workspace.ts";

/**
 * Exec times of instances of one kind differ by up to a third over their whole life, so rounds alternate over this many
 * instances.
 */
export const EXEC_INSTANCES = 4;

/**
 * One way to run code. It offers the operations that it supports; each measures its own time, which excludes preparation
 * and removal. Times are milliseconds. The workspace owns what it opens.
 */
export interface Subject {
  /** Creates an instance, until it answers; then removes it. */
  readonly createToReady?: () => Promise<number>;
  /** Creates an instance, until the first byte of a program's output; then removes it. */
  readonly createToFirstOutput?: () => Promise<number>;
  /** Runs a static `true` in a persistent instance, `count` times sequentially, each after a pause. */
  readonly execTrue?: (count: number, restMs: number) => Promise<number[]>;
  /** Runs the static /bin/say in a persistent instance, until its output arrives; `count` times. */
  readonly execSay?: (count: number) => Promise<number[]>;
  /** Milliseconds for `count` static `true` in one instance, all at once and sequentially. */
  readonly execMany?: (count: number) => Promise<{ readonly atOnceMs: number; readonly inARowMs: number }>;
  /** The shortest call, `count` times sequentially. */
  readonly ping?: (count: number) => Promise<number[]>;
  /** Copies a host file into a persistent instance. */
  readonly writeFile?: (hostPath: string) => Promise<number>;
  /** Copies the last written file back to the host. */
  readonly readFile?: (hostPath: string) => Promise<number>;
  /** Like `writeFile`, from the memory of the host program. */
  readonly writeBytes?: (bytes: Uint8Array) => Promise<number>;
  /** Like `readFile`, in pieces into the memory of the host program; `check` receives each within the measured time. */
  readonly readBytes?: (check: (bytes: Uint8Array, offset: number) => void) => Promise<number>;
  /** Megabytes (PSS) of each of `count` concurrent idle instances; then removes them. */
  readonly idleMemory?: (count: number, signal: AbortSignal) => Promise<number[]>;
}

/** Returns the first item and moves it to the end. */
export function nextInTurn<T>(instances: T[]): T {
  const next = instances.shift();
  if (next === undefined) throw new RangeError("no instances to take turns");
  instances.push(next);
  return next;
}

export interface SubjectDefinition {
  readonly name: string;
  /** Description in the report. */
  readonly title: string;
  open(workspace: Workspace): Promise<Subject>;
}
