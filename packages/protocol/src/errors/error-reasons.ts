import type { ErrorReasonEntry } from "./error-reason.ts";
import { agentReasons } from "./reasons/agent.ts";
import { authReasons } from "./reasons/auth.ts";
import { backupReasons } from "./reasons/backup.ts";
import { checkpointReasons } from "./reasons/checkpoint.ts";
import { clientReasons } from "./reasons/client.ts";
import { clusterReasons } from "./reasons/cluster.ts";
import { configReasons } from "./reasons/config.ts";
import { containerReasons } from "./reasons/container.ts";
import { fileReasons } from "./reasons/file.ts";
import { hostReasons } from "./reasons/host.ts";
import { machineReasons } from "./reasons/machine.ts";
import { previewReasons } from "./reasons/preview.ts";
import { processReasons } from "./reasons/process.ts";
import { requestReasons } from "./reasons/request.ts";
import { sandboxReasons } from "./reasons/sandbox.ts";
import { secretReasons } from "./reasons/secret.ts";
import { storeReasons } from "./reasons/store.ts";

/** Every reason under the heading that the documentation lists it under. */
export const errorTopics = {
  Sandboxes: sandboxReasons,
  Processes: processReasons,
  Files: fileReasons,
  Checkpoints: checkpointReasons,
  "Requests and sockets": requestReasons,
  Previews: previewReasons,
  "Keys and access": authReasons,
  Secrets: secretReasons,
  Clients: clientReasons,
  "The agent and its channel": agentReasons,
  "Leases, handoff and cluster": clusterReasons,
  "The store": storeReasons,
  Backups: backupReasons,
  "Containers and images": containerReasons,
  "Virtual machines and root filesystems": machineReasons,
  "The host and its instances": hostReasons,
  "Configuration and start-up": configReasons,
} as const satisfies Record<string, Readonly<Record<string, ErrorReasonEntry>>>;

/** Every reason that Sandpiper gives, with its code, details and default hint. */
export const errorReasons = {
  ...sandboxReasons,
  ...processReasons,
  ...fileReasons,
  ...checkpointReasons,
  ...requestReasons,
  ...previewReasons,
  ...authReasons,
  ...secretReasons,
  ...clientReasons,
  ...agentReasons,
  ...clusterReasons,
  ...storeReasons,
  ...backupReasons,
  ...containerReasons,
  ...machineReasons,
  ...hostReasons,
  ...configReasons,
};

export type ErrorReason = keyof typeof errorReasons;

export function isErrorReason(value: unknown): value is ErrorReason {
  return typeof value === "string" && Object.hasOwn(errorReasons, value);
}
