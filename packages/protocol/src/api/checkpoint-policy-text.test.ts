import { describe, expect, it } from "vitest";
import { parseCheckpointPolicy } from "./checkpoint-policy-text.ts";

describe("the text of a checkpoint policy", () => {
  it.each([
    ["none", null],
    ["idle", { onIdle: true }],
    ["idle,every=5m,keep=3", { onIdle: true, everyMs: 300_000, keepLast: 3 }],
    ["disconnect,command,every=90s", { onDisconnect: true, perCommand: true, everyMs: 90_000 }],
    ["every=2h", { everyMs: 7_200_000 }],
  ])("%s sets exactly its triggers", (text, policy) => {
    expect(parseCheckpointPolicy(text)).toEqual(policy);
  });

  it.each(["", "idle,", "sometimes", "every=5", "every=0s", "every=-5m", "keep=0", "keep=3m", "none,idle", "toString"])(
    "%j is refused",
    (text) => {
      expect(parseCheckpointPolicy(text)).toBe(undefined);
    },
  );
});
