/** A program that uses too much memory, and how many of it run at once. */
export interface HogCase {
  readonly name: string;
  readonly command: string;
  readonly count: number;
}

/** How a hog ended; `error` if its command has no result. */
export interface HogEnd {
  readonly exitCode?: number;
  readonly outOfMemory?: boolean;
  readonly error?: string;
}

/** What one sandbox did when its hogs used all memory. */
export interface HogFigures {
  readonly name: string;
  readonly count: number;
  readonly results: readonly HogEnd[];
  readonly isAlive: boolean;
  readonly bystandersAlive: number;
  readonly bystanders: number;
  /** The largest excess of the cgroup over the sandbox's memory. */
  readonly mostAboveMib: number;
  /** Processes that the machine's own OOM killer ended. */
  readonly hostKills: number;
}
