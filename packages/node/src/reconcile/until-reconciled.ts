import { type Clock, SandboxError } from "@sandpiper/core";
import type { NodeReconciler, NodeReconciliation } from "./node-reconciler.ts";

/** How often a provider that could not be asked is asked again. */
const ASK_AGAIN_MS = 5000;

export interface UntilReconciledOptions {
  readonly clock: Clock;
  /** Told when a provider has answered at last. */
  readonly tell: (found: NodeReconciliation) => void;
  readonly onError: (error: SandboxError) => void;
}

/** Asks providers that did not answer again and again; gives what stops it. */
export function untilReconciled(
  reconciler: NodeReconciler,
  { clock, tell, onError }: UntilReconciledOptions,
): () => void {
  let stop = () => {};
  let isStopped = false;
  const askAgain = async () => {
    const { pending } = reconciler;
    try {
      const found = await reconciler.reconcile();
      if (reconciler.pending < pending) tell(found);
    } catch (thrown) {
      onError(SandboxError.from(thrown));
    }
    if (!isStopped) next();
  };
  const next = () => {
    if (reconciler.pending > 0) stop = clock.schedule(ASK_AGAIN_MS, askAgain);
  };
  next();
  return () => {
    isStopped = true;
    stop();
  };
}
