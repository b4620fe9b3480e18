import type { LiveSandbox } from "../../sandboxes/live-sandbox.ts";

/** Records holds of the sandbox as `+client`, and their release as `-client`. */
export function watchHolds(live: LiveSandbox): readonly string[] {
  const held: string[] = [];
  const original = live.hold.bind(live);
  live.hold = (activity) => {
    const hold = original(activity);
    held.push(`+${activity}`);
    return {
      [Symbol.dispose]() {
        held.push(`-${activity}`);
        hold[Symbol.dispose]();
      },
    };
  };
  return held;
}
