/** One thing about this host that Sandpiper depends on. */
export interface Check {
  readonly name: string;
  /** A warning does not keep the default provider from working. */
  readonly status: "ok" | "warning" | "failed";
  readonly detail: string;
  /** What to do about it. */
  readonly hint?: string;
}
