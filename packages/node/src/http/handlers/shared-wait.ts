import type { ProcessExit, ProcessHandle } from "@sandpiper/core";
import type { LiveSandbox } from "../../sandboxes/live-sandbox.ts";

const waits = new WeakMap<LiveSandbox, Map<string, Promise<ProcessExit>>>();

/**
 * Waits for the end of a process, once for all who wait. Waiting cannot be taken back, and those who ask again and again
 * with a short time limit would otherwise use up the calls that a sandbox may have open.
 */
export function sharedWait(live: LiveSandbox, process: ProcessHandle): Promise<ProcessExit> {
  let ofSandbox = waits.get(live);
  if (ofSandbox === undefined) {
    ofSandbox = new Map();
    waits.set(live, ofSandbox);
  }
  const running = ofSandbox.get(process.id);
  if (running !== undefined) return running;
  const wait = process.wait();
  const settled = () => ofSandbox.delete(process.id);
  wait.then(settled, settled);
  ofSandbox.set(process.id, wait);
  return wait;
}
