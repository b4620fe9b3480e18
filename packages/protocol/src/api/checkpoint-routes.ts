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
    summary: "Create a checkpoint of a sandbox; the sandbox keeps running unless stop is true",
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
    summary: "Get a checkpoint by id or name",
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
    summary: "Fork a sandbox: create copies of its current state or of a checkpoint",
    access: "sandboxes",
    body: json(checkpoint.forkBodySchema),
    answer: json(sandbox.sandboxListSchema),
  },
  pauseSandbox: {
    ...change,
    method: "POST",
    path: `${SANDBOX}/pause`,
    summary: "Pause a sandbox",
    access: "sandbox",
    answer: json(sandbox.sandboxResourceSchema),
  },
  resumeSandbox: {
    ...change,
    method: "POST",
    path: `${SANDBOX}/resume`,
    summary: "Resume a paused or stopped sandbox",
    access: "sandbox",
    answer: json(sandbox.sandboxResourceSchema),
  },
  rollbackSandbox: {
    ...change,
    method: "POST",
    path: `${SANDBOX}/rollback`,
    summary: "Roll a sandbox back to one of its checkpoints",
    access: "sandbox",
    body: json(checkpoint.rollbackBodySchema),
    answer: json(sandbox.sandboxResourceSchema),
  },
  handoffSandbox: {
    ...change,
    method: "POST",
    path: `${SANDBOX}/handoff`,
    summary: "Move a sandbox to the node that answers",
    access: "sandbox",
    body: json(checkpoint.handoffBodySchema),
    answer: json(sandbox.sandboxResourceSchema),
  },
} as const satisfies Record<string, Route>;
