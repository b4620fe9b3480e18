/** The result of checking one thing that Sandpiper needs from this host. */
export interface Check {
  readonly name: string;
  /** The default provider works despite warnings. */
  readonly status: "ok" | "warning" | "failed";
  readonly detail: string;
  /** What the user can do about it. */
  readonly hint?: string;
}
