import { findCheckpoint } from "../../checkpoints/find-checkpoint.ts";
import type { Handlers } from "../call.ts";

export const checkpointHandlers: Handlers<
  | "createCheckpoint"
  | "listCheckpoints"
  | "getCheckpoint"
  | "deleteCheckpoint"
  | "forkSandbox"
  | "pauseSandbox"
  | "resumeSandbox"
  | "rollbackSandbox"
  | "handoffSandbox"
> = {
  createCheckpoint: ({ principal, params, body, deps }) => deps.checkpoints.create(principal, params.id, body),

  async listCheckpoints({ principal, params, saved, deps }) {
    return { items: saved?.checkpoints.toReversed() ?? [...(await deps.checkpoints.list(principal, params.id))] };
  },

  getCheckpoint: ({ principal, params, saved, deps }) =>
    saved === undefined
      ? deps.checkpoints.get(principal, params.id, params.checkpoint)
      : findCheckpoint(saved, params.checkpoint),

  async deleteCheckpoint({ principal, params, deps }) {
    await deps.checkpoints.remove(principal, params.id, params.checkpoint);
    return undefined;
  },

  async forkSandbox({ principal, params, body, deps }) {
    return { items: [...(await deps.forks.fork(principal, params.id, body))] };
  },

  pauseSandbox: ({ principal, params, deps }) => deps.checkpoints.pause(principal, params.id),

  resumeSandbox: ({ principal, params, deps }) => deps.checkpoints.resume(principal, params.id),

  rollbackSandbox: ({ principal, params, body, deps }) => deps.checkpoints.rollback(principal, params.id, body),

  handoffSandbox: ({ principal, params, body, request, deps }) =>
    deps.locator.bring(principal, params.id, { takeover: body.takeover ?? false, signal: request.signal }),
};
