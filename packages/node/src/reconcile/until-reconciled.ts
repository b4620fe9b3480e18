import { type Clock, SandboxError } from "@sandpiper/core";
import { repeat } from "../cluster/repeat.ts";
import type { NodeReconciler, NodeReconciliation } from "./node-reconciler.ts";

/** How often to retry a provider that did not respond. */
const RETRY_MS = 5000;

export interface UntilReconciledOptions {
  readonly clock: Clock;
  /** Called when a provider has responded. */
  readonly tell: (reconciliation: NodeReconciliation) => void;
  readonly onError: (error: SandboxError) => void;
}

/** Retries providers that did not respond. Returns a function that stops the retries. */
export function untilReconciled(
  reconciler: NodeReconciler,
  { clock, tell, onError }: UntilReconciledOptions,
): () => void {
  const stop = repeat(clock, RETRY_MS, async () => {
    const { pending } = reconciler;
    try {
      const reconciliation = await reconciler.reconcile();
      if (reconciler.pending < pending) tell(reconciliation);
    } catch (thrown) {
      onError(SandboxError.from(thrown));
    }
    if (reconciler.pending === 0) stop();
  });
  if (reconciler.pending === 0) stop();
  return stop;
}
