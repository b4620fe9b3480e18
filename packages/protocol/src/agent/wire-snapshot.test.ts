import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { PROTOCOL_GENERATION } from "./generation.ts";
import { createWireSnapshot } from "./wire-snapshot.ts";

describe("the agent's wire format", () => {
  it("equals the frozen snapshot of its generation", () => {
    const advice =
      `The agent's wire format differs from the frozen generation ${PROTOCOL_GENERATION}. Agents and hosts in the field would ` +
      "misread each other: raise PROTOCOL_GENERATION in packages/protocol/src/agent/generation.ts and in the agent, " +
      "then run `npm run freeze-protocol`.";
    expect(existsSync(snapshotFile(PROTOCOL_GENERATION)), advice).toBe(true);
    expect(createWireSnapshot(), advice).toEqual(readSnapshot(PROTOCOL_GENERATION));
  });

  it("has a frozen snapshot of every generation so far", () => {
    for (let generation = 1; generation <= PROTOCOL_GENERATION; generation++) {
      expect(readSnapshot(generation)).toMatchObject({ generation });
    }
  });
});

function readSnapshot(generation: number): unknown {
  return JSON.parse(readFileSync(snapshotFile(generation), "utf8"));
}

function snapshotFile(generation: number): URL {
  return new URL(`../../snapshots/generation-${generation}.json`, import.meta.url);
}
