import type { Clock } from "@sandpiper/core";
import type { MomentaryUsage } from "../auth/momentary-usage.ts";
import type { Authenticator } from "../auth/principal.ts";
import type { Peers } from "../forward/peers.ts";
import type { Locator } from "../handoff/locator.ts";
import type { Callers } from "../http/callers.ts";
import type { RequestLog } from "../http/request-log.ts";
import type { Previews } from "../preview/previews.ts";
import type { SqliteSandboxRecords } from "../records/sqlite-sandbox-records.ts";
import type { NodePhase } from "../sandboxes/node-phase.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";

/** The parts of the node that serve previews. */
export interface PreviewDependencies {
  readonly previews: Previews;
  readonly locator: Locator;
  readonly access: SandboxAccess;
  readonly registry: SandboxRegistry;
  readonly records: Pick<SqliteSandboxRecords, "get">;
  readonly authenticator: Authenticator;
  readonly callers: Callers;
  readonly momentary: Pick<MomentaryUsage, "take">;
  readonly phase: NodePhase;
  /** Undefined on a standalone node, which forwards nothing. */
  readonly peers?: Peers | undefined;
  readonly log: RequestLog;
  readonly clock: Clock;
  readonly randomUuid?: (() => string) | undefined;
}
