import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import { label } from "../engine/labels.ts";

/** An engine's event about a sandbox's container. */
export interface EngineEvent {
  readonly id: SandboxId;
  readonly action: "create" | "start" | "die" | "destroy";
  readonly exitCode: number | undefined;
  readonly at: Date;
}

/** The names of Docker, and those of Podman where they differ. */
const ACTIONS: Readonly<Record<string, EngineEvent["action"]>> = {
  create: "create",
  start: "start",
  die: "die",
  died: "die",
  destroy: "destroy",
  remove: "destroy",
};

export const engineActions = Object.keys(ACTIONS);

interface EventLine {
  readonly Action?: string;
  readonly Actor?: { readonly Attributes?: Readonly<Record<string, string>> };
  readonly time?: number;
}

/** Returns undefined for events about anything else. */
export function parseEngineEvent(line: string): EngineEvent | undefined {
  const { Action = "", Actor, time = 0 } = JSON.parse(line) as EventLine;
  const action = ACTIONS[Action];
  const attributes = Actor?.Attributes ?? {};
  const id = attributes[label.sandbox] ?? "";
  if (action === undefined || !isSandboxId(id)) return undefined;
  const exitCode = attributes["exitCode"] ?? attributes["containerExitCode"];
  return { id, action, exitCode: exitCode === undefined ? undefined : Number(exitCode), at: new Date(time * 1000) };
}
