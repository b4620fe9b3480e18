import type { Clock } from "@sandpiper/core";
import type { CreateWebhookBody, WebhookResource } from "@sandpiper/protocol";
import type { AuditTrail } from "../audit/audit-trail.ts";
import type { KeyService } from "../auth/key-service.ts";
import type { MomentaryUsage } from "../auth/momentary-usage.ts";
import type { Authenticator } from "../auth/principal.ts";
import type { Checkpoints } from "../checkpoints/checkpoints.ts";
import type { Forks } from "../checkpoints/forks.ts";
import type { SharedKeyService } from "../cluster/shared-key-service.ts";
import type { NodeDirectory } from "../cluster/standalone-nodes.ts";
import type { NodeContainers } from "../containers/node-containers.ts";
import type { NodeMachines } from "../containers/node-machines.ts";
import type { Rebuilds } from "../containers/rebuilds.ts";
import type { Stops } from "../containers/stops.ts";
import type { FlowApprovals } from "../flows/flow-approvals.ts";
import type { FlowLog } from "../flows/flow-log.ts";
import type { NetworkBundles } from "../flows/suggest-rules.ts";
import type { Peers } from "../forward/peers.ts";
import type { Bindings } from "../forward/request-forwarder.ts";
import type { Locator } from "../handoff/locator.ts";
import type { Previews } from "../preview/previews.ts";
import type { EventFeed } from "../sandboxes/event-feed.ts";
import type { HostReserve } from "../sandboxes/host-reserve.ts";
import type { NodePhase } from "../sandboxes/node-phase.ts";
import type { NodePool } from "../sandboxes/node-pool.ts";
import type { NodeVolumes } from "../sandboxes/node-volumes.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import type { SandboxNetworks } from "../sandboxes/sandbox-networks.ts";
import type { SandboxService } from "../sandboxes/sandbox-service.ts";
import type { UsageReport } from "../sandboxes/usage-report.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import type { BodyLimits } from "./body-limits.ts";
import type { Callers } from "./callers.ts";
import type { RequestContext } from "./request-context.ts";

interface WebhookAdmin {
  create(body: CreateWebhookBody): WebhookResource & { readonly secret: string };
  list(): readonly WebhookResource[];
  /** Throws `not_found`. */
  remove(id: string): Promise<void>;
}

interface HttpMetrics {
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
  observeRequest(request: { readonly operation: string; readonly status: number; readonly seconds: number }): void;
  observeExec(provider: string, seconds: number): void;
}

/** The part of pino's interface that is used. */
interface HttpLogger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Serves a path outside REST. */
interface Endpoint {
  serve(request: Request, context: RequestContext, bindings: Bindings): Promise<Response>;
}

/** The parts of the node that REST uses. */
export interface HttpDependencies {
  readonly sandboxes: SandboxService;
  readonly access: SandboxAccess;
  readonly sandboxNetworks: SandboxNetworks;
  readonly locator: Locator;
  readonly checkpoints: Checkpoints;
  readonly forks: Forks;
  readonly previews: Previews;
  readonly containers: NodeContainers;
  readonly volumes: NodeVolumes;
  readonly machines: NodeMachines;
  readonly rebuilds: Pick<Rebuilds, "rebuild">;
  readonly stops: Pick<Stops, "stop" | "start">;
  readonly nodes: NodeDirectory;
  /** Undefined on a standalone node, which forwards nothing. */
  readonly peers?: Peers | undefined;
  readonly authenticator: Authenticator;
  readonly callers: Callers;
  readonly bodies: BodyLimits;
  readonly keys: Pick<
    KeyService | SharedKeyService,
    "create" | "list" | "update" | "revoke" | "tenants" | "updateTenant"
  >;
  readonly secrets: Pick<SecretService, "create" | "list" | "update" | "remove">;
  readonly momentary: Pick<MomentaryUsage, "take">;
  readonly usage: Pick<UsageReport, "read">;
  readonly reserve: Pick<HostReserve, "require" | "lowOn">;
  readonly feed: EventFeed;
  readonly flows: Pick<FlowLog, "list" | "follow">;
  readonly approvals: FlowApprovals;
  readonly networkBundles: NetworkBundles;
  readonly pool: Pick<NodePool, "list" | "set">;
  readonly webhooks: WebhookAdmin;
  readonly audit: Pick<AuditTrail, "note" | "list" | "verify" | "verifyFile">;
  readonly metrics: HttpMetrics;
  /** Serves /mcp; without it, the path does not exist. */
  readonly mcp?: Endpoint | undefined;
  readonly version: string;
  readonly logger: HttpLogger;
  readonly phase: NodePhase;
  /** Limit for bodies that are read as a whole. The sandbox's disk limits files and archives. */
  readonly bodyLimitBytes: number;
  /** Origins of web pages that may call; none by default. */
  readonly corsOrigins: readonly string[];
  readonly randomUuid?: (() => string) | undefined;
  readonly clock?: Clock | undefined;
}
