/** What the bench asks of a host program over its IPC channel, one question at a time. */
export type HostRequest =
  | { readonly kind: "create"; readonly count: number }
  /** Runs the static `true` once in every live sandbox, `rounds` times over. */
  | { readonly kind: "exec"; readonly rounds: number }
  | { readonly kind: "destroy" }
  /** Removes what an earlier host program left behind. */
  | { readonly kind: "reconcile" };

export interface HostAnswer {
  /** Ids of the sandboxes that are live after the request. */
  readonly ids: readonly string[];
  /** Milliseconds; one per exec. */
  readonly samples: readonly number[];
  readonly error: string | undefined;
}
