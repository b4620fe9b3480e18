/** Requests to a host program over its IPC channel, one at a time. */
export type HostRequest =
  | { readonly kind: "create"; readonly count: number }
  /** Runs the static `true` once in every live sandbox, in `rounds` rounds. */
  | { readonly kind: "exec"; readonly rounds: number }
  | { readonly kind: "destroy" }
  /** Removes the leftovers of an earlier host program. */
  | { readonly kind: "reconcile" };

export interface HostAnswer {
  /** Ids of the live sandboxes after the request. */
  readonly ids: readonly string[];
  /** Milliseconds; one per exec. */
  readonly samples: readonly number[];
  readonly error: string | undefined;
}
