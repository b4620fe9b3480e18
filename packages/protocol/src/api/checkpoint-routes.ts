import * as checkpoint from "./checkpoint.ts";
import { json, type Route } from "./route.ts";
import { change, empty, look, make, SANDBOX } from "./route-parts.ts";
import * as sandbox from "./sandbox.ts";

const CHECKPOINT = `${SANDBOX}/checkpoints/{checkpoint}`;

/** Operations on checkpoints. */
export const checkpointRoutes = {
  createCheckpoint: {
    ...make,
    method: "POST",
    path: `${SANDBOX}/checkpoints`,
    summary: "Save a sandbox, and leave it running unless asked to stop it",
    access: "sandbox",
    body: json(checkpoint.createCheckpointBodySchema),
    answer: json(checkpoint.checkpointResourceSchema),
  },
  listCheckpoints: {
    ...look,
    method: "GET",
    path: `${SANDBOX}/checkpoints`,
    summary: "List a sandbox's checkpoints, newest first",
    access: "sandbox",
    answer: json(checkpoint.checkpointListSchema),
  },
  getCheckpoint: {
    ...look,
    method: "GET",
    path: CHECKPOINT,
    summary: "Describe a checkpoint, by its id or name",
    access: "sandbox",
    answer: json(checkpoint.checkpointResourceSchema),
  },
  deleteCheckpoint: {
    ...empty,
    method: "DELETE",
    path: CHECKPOINT,
    summary: "Delete a checkpoint",
    access: "sandbox",
  },
  forkSandbox: {
    ...make,
    method: "POST",
    path: `${SANDBOX}/fork`,
    summary: "Make sandboxes that go on from where this one is; it is not touched",
    access: "sandboxes",
    body: json(checkpoint.forkBodySchema),
    answer: json(sandbox.sandboxListSchema),
  },
  pauseSandbox: {
    ...change,
    method: "POST",
    path: `${SANDBOX}/pause`,
    summary: "Hold a sandbox as it is, with nothing of it running",
    access: "sandbox",
    answer: json(sandbox.sandboxResourceSchema),
  },
  resumeSandbox: {
    ...change,
    method: "POST",
    path: `${SANDBOX}/resume`,
    summary: "Let a paused or stopped sandbox go on",
    access: "sandbox",
    answer: json(sandbox.sandboxResourceSchema),
  },
  rollbackSandbox: {
    ...change,
    method: "POST",
    path: `${SANDBOX}/rollback`,
    summary: "Set a sandbox back to one of its checkpoints",
    access: "sandbox",
    body: json(checkpoint.rollbackBodySchema),
    answer: json(sandbox.sandboxResourceSchema),
  },
  handoffSandbox: {
    ...change,
    method: "POST",
    path: `${SANDBOX}/handoff`,
    summary: "Bring a sandbox to the node that is asked",
    access: "sandbox",
    body: json(checkpoint.handoffBodySchema),
    answer: json(sandbox.sandboxResourceSchema),
  },
} as const satisfies Record<string, Route>;
