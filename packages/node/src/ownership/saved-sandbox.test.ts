import { rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { sandboxRecord } from "../testing/sandbox-record.ts";
import { parseSavedSandbox, savedSandboxJson } from "./saved-sandbox.ts";

const record = sandboxRecord({ fidelity: "memory", state: "paused" });
const checkpoint = {
  id: crypto.randomUUID(),
  sandboxId: record.id,
  name: null,
  fidelity: "memory",
  createdAt: "2026-01-01T00:00:00.000Z",
  expiresAt: null,
  sizeBytes: 1,
  uploadedBytes: 1,
  pausedMs: 1,
  isAutomatic: false,
  requirements: {},
} as const;
const current = JSON.parse(
  JSON.stringify(savedSandboxJson({ record, requirements: {}, checkpoints: [checkpoint] }, undefined)),
);

describe("the state of a sandbox in the store", () => {
  it("keeps the fields that a newer version added to the state, the record and a checkpoint", () => {
    const newer = {
      ...current,
      added: { to: "the state" },
      record: { ...current.record, egress: "none" },
      checkpoints: [{ ...current.checkpoints[0], kind: "incremental" }],
    };
    const saved = parseSavedSandbox(newer);
    // The node's database has no column for the new field of the record.
    const written = savedSandboxJson({ ...saved, record: { ...record, state: "ready" } }, saved.unknown);
    expect(JSON.parse(JSON.stringify(written))).toEqual({
      ...newer,
      record: { ...newer.record, state: "ready" },
    });
  });

  it("is refused if a newer version wrote it in a format that this one must not ignore", async () => {
    const refused = await rejection((async () => parseSavedSandbox({ ...current, version: 2 }))());
    expect(refused).toMatchObject({
      code: "failed_precondition",
      reason: "state_too_new",
      details: { found: 2, known: 1 },
      hint: expect.stringContaining("upgrade this node"),
    });
  });
});
