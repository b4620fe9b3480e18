/** Something set-up needs and does not install itself. */
export interface Problem {
  readonly missing: string;
  /** The exact command, or commands, to run instead. */
  readonly remedy: string;
}

/** What one step of set-up found. */
export interface Plan {
  /** Where the thing is, or what will be done about it. */
  readonly detail: string;
  readonly problems: readonly Problem[];
  /** Absent when there is nothing to do. */
  readonly work?: (() => Promise<void>) | undefined;
}
