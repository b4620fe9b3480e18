import { readFileSync } from "node:fs";
import { createSandboxId, SandboxError } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { canTransition, type SandboxState, sandboxTransitions, transition } from "./sandbox-state.ts";
import { stateNames } from "./state-names.ts";

const states = Object.keys(sandboxTransitions) as SandboxState[];
const allowed = [
  "creating ready",
  "ready paused",
  "paused ready",
  "ready checkpointing",
  "ready stopped",
  "checkpointing ready",
  "checkpointing stopped",
  "stopped restoring",
  "restoring ready",
];

describe("the states of a sandbox", () => {
  it("have exactly the documented transitions", () => {
    for (const from of states) {
      for (const to of states) {
        const isEnd =
          (to === "failed" && from !== "failed" && from !== "destroyed") || (to === "destroyed" && from !== to);
        expect(`${from} ${to} ${canTransition(from, to)}`).toBe(
          `${from} ${to} ${isEnd || allowed.includes(`${from} ${to}`)}`,
        );
      }
    }
  });

  it("refuse other transitions, and name the allowed ones", () => {
    const id = createSandboxId();
    expect(transition(id, "creating", "ready")).toBe("ready");
    expect(() => transition(id, "destroyed", "ready")).toThrow(SandboxError);
    expect(() => transition(id, "stopped", "ready")).toThrow(
      expect.objectContaining({
        code: "failed_precondition",
        reason: "illegal_transition",
        details: { from: "stopped", to: "ready", allowed: ["restoring", "failed", "destroyed"] },
      }),
    );
  });

  it("have the other names that docs/states.md shows", () => {
    const page = readFileSync(new URL("../../../../docs/states.md", import.meta.url), "utf8");
    for (const state of states) {
      const { lifecycle, container, status } = stateNames[state];
      const cell = (name: string | undefined) => (name === undefined ? "–" : `\`${name}\``);
      expect(page).toContain(`| \`${state}\` | ${cell(lifecycle)} | ${cell(container)} | ${cell(status)} |`);
    }
  });
});
