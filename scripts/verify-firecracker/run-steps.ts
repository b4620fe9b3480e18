import { STEPS } from "./steps.ts";
import type { VerifiedNode } from "./verified-node.ts";

export interface StepResult {
  readonly name: string;
  readonly status: "passed" | "failed" | "not run";
  readonly ms: number;
  readonly detail: string;
}

export interface RunStepsOptions {
  readonly signal: AbortSignal;
  readonly onStep: (result: StepResult) => void;
}

/** A step that fails does not keep the next ones from running, except the first, which they all need. */
export async function runSteps(node: VerifiedNode, { signal, onStep }: RunStepsOptions): Promise<StepResult[]> {
  const results: StepResult[] = [];
  for (const [name, step] of Object.entries(STEPS)) {
    const isPossible = !signal.aborted && results[0]?.status !== "failed";
    const result: StepResult = isPossible
      ? await runStep(name, () => step(node), signal)
      : { name, status: "not run", ms: 0, detail: signal.aborted ? "interrupted" : "no machine boots" };
    results.push(result);
    onStep(result);
  }
  return results;
}

async function runStep(name: string, step: () => Promise<string>, signal: AbortSignal): Promise<StepResult> {
  const startedAtMs = performance.now();
  const end = (status: StepResult["status"], detail: string): StepResult => ({
    name,
    status,
    ms: Math.round(performance.now() - startedAtMs),
    detail,
  });
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return end("passed", await Promise.race([step(), aborted]));
  } catch (error) {
    // An assertion adds a comparison of the values.
    const [message = ""] = (error instanceof Error ? error.message : String(error)).split("\n\n");
    return end("failed", message);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
