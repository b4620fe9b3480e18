import { SandboxError } from "@sandpiper/core";
import {
  cacheNameSchema,
  checkpointRefSchema,
  isSandboxId,
  portNumberSchema,
  processIdSchema,
  projectNameSchema,
  secretNameSchema,
  volumeNameSchema,
} from "@sandpiper/protocol";
import { noSuchCache } from "../containers/node-containers.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import { noSuchVolume } from "../sandboxes/node-volumes.ts";
import { noSuchSecret } from "../secrets/secret-service.ts";
import type { PathParams } from "./call.ts";

/** Throws `not_found` for names that cannot exist. */
export function pathParams(given: Readonly<Record<string, string | undefined>>): PathParams {
  const { id, process, checkpoint, key = "", webhook = "", ...names } = given;
  const { project = "", cache = "", volume = "", machine = "", tenant = "", secret = "", request = "", port } = names;
  if (id !== undefined && !isSandboxId(id)) throw noSuchSandbox(id.slice(0, 64));
  if (process !== undefined && !processIdSchema.safeParse(process).success) throw noSuchProcess(process);
  if (checkpoint !== undefined && !checkpointRefSchema.safeParse(checkpoint).success)
    throw noSuchCheckpoint(checkpoint);
  const isCache = projectNameSchema.safeParse(project).success && cacheNameSchema.safeParse(cache).success;
  if (cache !== "" && !isCache) throw noSuchCache(project, cache);
  if (volume !== "" && !volumeNameSchema.safeParse(volume).success) throw noSuchVolume(volume);
  if (secret !== "" && !secretNameSchema.safeParse(secret).success) throw noSuchSecret(secret);
  const required = { id: id ?? "", process: process ?? "", checkpoint: checkpoint ?? "" };
  return {
    ...required,
    key,
    webhook,
    project,
    cache,
    volume,
    machine,
    tenant,
    request,
    secret,
    port: port === undefined ? 0 : portOf(port),
  };
}

function portOf(text: string): number {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  if (!portNumberSchema.safeParse(port).success) throw noSuchPort(text);
  return port;
}

function noSuchPort(port: string): SandboxError {
  return new SandboxError("no_such_port", { message: `no such port: ${JSON.stringify(port.slice(0, 64))}` });
}

function noSuchProcess(process: string): SandboxError {
  return new SandboxError("no_such_process", { message: `no such process: ${JSON.stringify(process.slice(0, 64))}` });
}

function noSuchCheckpoint(checkpoint: string): SandboxError {
  return new SandboxError("no_such_checkpoint", {
    message: `no such checkpoint: ${JSON.stringify(checkpoint.slice(0, 64))}`,
  });
}
